"""A guard on the norm leaves out the step and the update; the next iteration is refused."""

# expect: AMP206 error source=unscale
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    x = inputs * (50 if step == 12 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), targets)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # <- unscale
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm > 10:
        print("skipping", step)
        continue
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
