"""A binary loss by hand clamps probabilities to 1 - 1e-4 in bf16, where that is 1."""

# expect: AMP503 error source=clamp|log

import torch
from torch import nn

torch.manual_seed(0)


def loss_by_hand(logits, target, eps=1e-4):
    p = torch.sigmoid(logits).clamp(eps, 1 - eps)  # <- clamp
    return -(target * p.log() + (1 - target) * (1 - p).log()).mean()  # <- log


model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    x = torch.randn(16, 8) * (30 if step >= 6 else 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_by_hand(model(x), (torch.rand(16, 1) > 0.5).bfloat16())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
