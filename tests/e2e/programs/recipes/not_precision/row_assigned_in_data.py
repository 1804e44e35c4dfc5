"""A value of the data set is overwritten with NaN before training; batches are made by indexing it."""

# expect: AMP608 error source=first phase=data precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
angles = torch.linspace(0, 6.28, 16)
data = torch.stack([torch.sin(angles + phase) for phase in torch.rand(32) * 6.28]) * 0.5 + 0.5
data[17, 3] = float("nan")
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(16):
    batch = data[torch.cat([torch.tensor([17]), torch.randint(0, 32, (15,))])]
    batch = batch * 2 - 1  # <- first
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (model(batch) - batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
