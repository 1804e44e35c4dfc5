"""Two processes under one launcher that train models of their own: their scales may differ."""

# expect: quiet
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import os

import torch
from torch import nn

rank = int(os.environ["RANK"])
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0 / (rank + 1))
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
