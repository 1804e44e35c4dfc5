"""Shapes that do not fit under autocast, a promoting addition, and checkpointing that leaves its second pass early."""

# expect: quiet

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
first, second = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 3)
bias = nn.Parameter(torch.zeros(16))
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), bias], lr=0.1)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = checkpoint(first, inputs, use_reentrant=False) + bias
        try:
            second(hidden[:, :7].to(torch.bfloat16))
        except RuntimeError:
            pass
        loss = nn.functional.cross_entropy(second(hidden).float(), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
