"""Gradient descent written by hand on fp16 weights that are ten thousand times as large as a step."""

# expect: AMP506 error source=update

import torch
from torch import nn

torch.manual_seed(0)


class Affine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(12, 12).half() + 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


net = Affine()
for _ in range(40):
    net.zero_grad()
    x = torch.randn(24, 12).half()
    net(x).float().square().mean().mul(0.01).backward()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(parameter.grad, alpha=-5e-3)  # <- update
