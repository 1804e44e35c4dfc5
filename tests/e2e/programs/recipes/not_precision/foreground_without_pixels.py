"""A detection loss averages over foreground boxes; one batch has none."""

# expect: AMP604 error source=mean precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(8, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(8):
    out = model(torch.randn(20, 8))
    foreground = torch.rand(20) > (2 if step == 5 else 0.5)
    boxes = F.l1_loss(out[foreground][:, :4], torch.randn(int(foreground.sum()), 4))  # <- mean
    loss = boxes + F.binary_cross_entropy_with_logits(out[:, 4], foreground.float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
