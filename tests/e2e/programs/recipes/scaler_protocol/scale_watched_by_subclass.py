"""A scaler of the program counts its skips by the scale before and after update(); nothing is divided by either."""

# expect: quiet

import torch
from torch import nn


class CountingScaler(torch.amp.GradScaler):
    def __init__(self, **settings):
        super().__init__("cpu", **settings)
        self.skips = 0

    def update(self, new_scale=None):
        before = self.get_scale()
        super().update(new_scale)
        self.skips += self.get_scale() < before


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = CountingScaler(init_scale=2.0**19)
for _ in range(40):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    loss = scaler.scale(loss)
    optimizer.zero_grad()
    loss.backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"{loss.item():.3f}")
print(f"{scaler.skips} of 40 steps skipped")
