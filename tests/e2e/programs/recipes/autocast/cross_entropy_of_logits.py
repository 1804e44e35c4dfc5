"""The form with logits under autocast, and the form with probabilities where autocast is off."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters())
inputs = torch.randn(32, 8)
targets = (inputs[:, :1] > 0).float()
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, targets)
        with torch.autocast("cpu", enabled=False):
            loss = loss + nn.functional.binary_cross_entropy(torch.sigmoid(logits.float()), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
