"""One batch overflows in front of a batch normalisation. The scaler skips the step; the running statistics keep it."""

# expect: AMP404 error symptoms=AMP408

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(20):
    inputs = torch.randn(16, 6) * (4e4 if step == 9 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        out = model[0](inputs)
        out = model[1:](out * 4)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
model.eval()
with torch.no_grad():
    print(model(torch.randn(4, 6)).isnan().any().item())
