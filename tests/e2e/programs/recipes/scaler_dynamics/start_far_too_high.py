"""A start copied from elsewhere: twenty steps are skipped before the first one is taken."""

# expect: quiet
# note: AMP304

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
for _ in range(80):
    inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
