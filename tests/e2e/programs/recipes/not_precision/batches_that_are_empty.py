"""Batches without any label are noticed and skipped; a mean over nothing is computed for the log alone."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
log = []
for step in range(16):
    x = torch.randn(12, 8)
    y = torch.randint(3, (12,)) if step % 4 else torch.full((12,), -100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
    if not (y >= 0).any():
        log.append(F.cross_entropy(logits.detach().float(), y).item())
        continue
    loss = F.cross_entropy(logits.float(), y, ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
