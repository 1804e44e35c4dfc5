"""An optimizer of one's own computes the step in fp32 and writes it back into bf16 weights, where it rounds away."""

# expect: AMP506 error source=step phase=optimizer

import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, parameters, lr=1e-5):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                average = self.state[p].setdefault("average", torch.zeros_like(p, dtype=torch.float32))
                average.mul_(0.9).add_(p.grad.float(), alpha=0.1)
                p.data.copy_(p.data.float() - group["lr"] * average.sign())


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(torch.bfloat16)
optimizer = Lion(model.parameters())
for _ in range(40):
    x, y = torch.randn(32, 16, dtype=torch.bfloat16), torch.randint(4, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x).float(), y).backward()
    optimizer.step()  # <- step
