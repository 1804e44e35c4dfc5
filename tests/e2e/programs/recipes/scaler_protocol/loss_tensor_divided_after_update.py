"""The same with tensors, inside a meter; accumulation."""

# expect: AMP213 warning source=log

import torch
from torch import nn

torch.manual_seed(0)


class Meter:
    def __init__(self):
        self.values = []

    def add(self, scaled, scaler):
        self.values.append((scaled.detach() / scaler.get_scale()).item())  # <- log


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=5)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
meter = Meter()
for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaled = scaler.scale(loss / 2)
    scaled.backward()
    if step % 2:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        meter.add(scaled, scaler)
print(meter.values[-1])
