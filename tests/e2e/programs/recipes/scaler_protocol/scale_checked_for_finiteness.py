"""Advice found in tutorials: torch.isfinite of the scale. get_scale() is a float, which isfinite refuses; and while
steps are skipped the scale stays finite, so the check never says anything."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(40):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    try:
        healthy = torch.isfinite(scaler.get_scale())
    except TypeError:
        healthy = torch.isfinite(torch.tensor(scaler.get_scale()))
    print(step, bool(healthy), loss.item())
