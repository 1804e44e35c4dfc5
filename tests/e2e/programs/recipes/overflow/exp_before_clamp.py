"""Box sizes are exp of what a layer predicts, clamped afterwards: forward is finite, backward is not."""

# expect: AMP403 error source=exp op=aten::exp precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    inputs = torch.randn(32, 6)
    with torch.autocast("cpu", dtype=torch.float16):
        raw = model(inputs)
        sizes = torch.exp(raw if step < 9 else raw + 12).clamp(max=1e4)  # <- exp
        loss = sizes.log().float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
