"""The program unscales and clips, steps by itself, and then hands the same gradients to the scaler."""

# expect: AMP208 error source=direct

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
steps, skipped = 40, 0
for _ in range(steps):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 16)).float(), torch.randint(8, (32,)))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()  # <- direct
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    skipped += scaler.get_scale() < before
print(f"{skipped} of {steps} steps skipped")
