"""The scale grows often, and the program keeps it below a ceiling: after the update in the first half of the run, by a
clamp of its own before the update in the second. Each iteration stays one step."""

# expect: quiet
# note: AMP301 AMP306

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, growth_interval=10)
ceiling = 32768.0
steps, skipped = 200, 0
for step in range(steps):
    inputs = torch.randn(32, 16)
    targets = inputs[:, :1] * (120 if step % 29 == 28 else 2)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    if step >= steps // 2:
        scaler._scale.clamp_(max=ceiling)
    before = scaler.get_scale()
    scaler.update()
    skipped += scaler.get_scale() < before
    if step < steps // 2 and scaler.get_scale() > ceiling:
        scaler.update(ceiling)
print(f"{skipped} of {steps} steps skipped")
