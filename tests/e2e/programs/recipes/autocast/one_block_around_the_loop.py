"""One autocast block around the loop: its cache keeps the casts of the first step, whatever becomes of weights."""

# expect: AMP103 error source=forward

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
inputs = torch.randn(64, 8)
targets = inputs[:, :3].argmax(1)
with torch.autocast("cpu", dtype=torch.float16):
    for _ in range(30):
        loss = nn.functional.cross_entropy(model(inputs), targets)  # <- forward
        with torch.autocast("cpu", enabled=False):
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print(loss.item().hex())
