"""Running minima from infinity, averages that take finite values only, a table of inf that is filled over time."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
best, average, table = torch.full((2,), torch.inf), torch.zeros(2), torch.full((20, 2), torch.nan)
for step in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(torch.randn(16, 6))
    loss = out.float().square().mean()
    with torch.no_grad():
        now = out.float().amin(0)
        best = torch.minimum(best, now)
        average.mul_(0.9).add_(now, alpha=0.1)
        table[step] = now
        seen = table.nanmean(0)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(best.isfinite().all().item(), seen.isfinite().all().item())
