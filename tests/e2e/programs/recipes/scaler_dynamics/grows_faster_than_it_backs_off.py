"""Settings with which the scale grows by four after every step and backs off by a tenth: most steps are skipped."""

# expect: AMP302 warning source=made

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", 2.0**15, growth_factor=4.0, backoff_factor=0.9, growth_interval=1)  # <- made
skipped = 0
for _ in range(60):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs).float(), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
    print(loss.item().hex())
print(f"{skipped} of 60 steps skipped")
