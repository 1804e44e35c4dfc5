"""Scaled gradients are clipped to a limit of their size: max_norm times a scale read in the iteration before."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0, growth_interval=5)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
scale = scaler.get_scale()
for _ in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5 * scale)
    scaler.step(optimizer)
    scaler.update()
    scale = scaler.get_scale()
    print(loss.item().hex())
