"""Adam written by hand for fp16 weights: squares of small gradients are 0 in fp16, and so is the eps beside their
root."""

# expect: AMP504 error source=update phase=optimizer

import torch
from torch import nn
from torch.nn import functional as F


class HalfAdam(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1e-3})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                mean = state.setdefault("mean", torch.zeros_like(p))
                square = state.setdefault("square", torch.zeros_like(p))
                mean.mul_(0.9).add_(p.grad, alpha=0.1)
                square.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                p.addcdiv_(mean, square.sqrt().add_(1e-8), value=-group["lr"])  # <- update


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1)).half()
optimizer = HalfAdam(net.parameters())
for _ in range(4):
    x = torch.randn(32, 6).half() * 0.02
    optimizer.zero_grad()
    F.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
