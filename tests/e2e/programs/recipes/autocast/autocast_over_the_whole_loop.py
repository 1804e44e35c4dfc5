"""One autocast block around the whole loop: backward runs in it, and the casts of the weights are those of the first
step for good. To leave it before the backward pass mends both."""

# expect: AMP101 error symptoms=AMP103

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
with torch.autocast("cpu", dtype=torch.float16):
    for step in range(40):
        inputs, targets = torch.randn(32, 16), torch.randint(8, (32,))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(step, loss.item())
