"""Nothing flows back: the loss is multiplied by a weight that is zero, and the scale doubles in every step."""

# expect: AMP303 warning source=update

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", growth_interval=1)
x, weight = torch.randn(32, 8), 0.0
for _ in range(60):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = weight * out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()  # <- update
print("0 of 60 steps skipped")
