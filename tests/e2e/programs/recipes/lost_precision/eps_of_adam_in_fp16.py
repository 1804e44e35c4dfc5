"""Adam on fp16 weights: its eps of 1e-8 is zero there, and where a gradient is zero the update is 0/0."""

# expect: AMP504 error source=step phase=optimizer

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 16), nn.Flatten(), nn.Linear(64, 5)).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(8):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randint(9, (16, 4))).float(), torch.randint(5, (16,)))
    loss.backward()
    optimizer.step()  # <- step
