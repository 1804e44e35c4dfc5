"""Products with numbers close to one that are no lost average: of a model that does not move, smoothed labels, a factor
of a schedule, the momentum of an optimizer of one's own."""

# expect: quiet

import copy

import torch
from torch import nn

torch.manual_seed(0)
teacher = nn.Linear(8, 3).to(torch.bfloat16).requires_grad_(False)
slow = copy.deepcopy(teacher)
student = nn.Linear(8, 3)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
labels = nn.functional.one_hot(torch.arange(16) % 3).bfloat16()
momentum = torch.zeros(3, 8, dtype=torch.bfloat16)
strength = torch.ones((), dtype=torch.bfloat16)
for _ in range(30):
    x = torch.randn(16, 8)
    smooth = labels * 0.999 + 0.001 / 3
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = student(x)
        loss = nn.functional.cross_entropy(out, smooth.float()) + strength.float() * nn.functional.mse_loss(
            out, teacher(x)
        )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        momentum.mul_(0.99).add_(student.weight.grad.bfloat16())
        for kept, weight in zip(slow.parameters(), teacher.parameters(), strict=True):
            kept.mul_(0.9999).add_(weight, alpha=1e-4)
