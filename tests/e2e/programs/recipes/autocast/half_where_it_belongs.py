"""A frozen half teacher, a normalisation that casts back to its input's dtype, and evaluation of a half copy."""

# expect: quiet

import copy

import torch
from torch import nn


class RootMeanSquare(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).requires_grad_(False).bfloat16()
student = nn.Sequential(nn.Linear(8, 16), RootMeanSquare(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
inputs = torch.randn(32, 8)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            wanted = teacher(inputs)
        loss = nn.functional.mse_loss(student(inputs).float(), wanted.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 5:
        fast = copy.deepcopy(student).bfloat16().eval()
        with torch.no_grad():
            print(step, fast(inputs.bfloat16()).float().mean().item())
