"""An optimizer of one's own that computes in fp32 from the bf16 weights and copies the result back into them: what is
smaller than half a step of theirs is gone, and which weights that hits differs from step to step."""

# expect: AMP506 error source=step

import torch
from torch import nn


class Plain(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(p.float() - group["lr"] * p.grad.float())


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 4)).to(torch.bfloat16)
optimizer = Plain(model.parameters(), lr=3e-4)
truth = torch.randn(32, 4)
for _ in range(60):
    x = torch.randn(16, 32)
    loss = nn.functional.cross_entropy(model(x.bfloat16()).float(), (x @ truth).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # <- step
