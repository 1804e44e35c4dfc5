"""Sensors leave NaN where nothing was measured; those entries are selected away before anything is computed."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    x, y = torch.randn(32, 6), torch.randn(32)
    y[torch.rand(32) < 0.3] = float("nan")
    x[torch.rand(32, 6) < 0.1] = float("nan")
    known = ~y.isnan()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.nan_to_num(x)).squeeze(-1)
    loss = F.mse_loss(out[known].float(), y[known])
    scale = torch.nanmean(y)
    optimizer.zero_grad()
    (loss + 0 * scale.abs()).backward()
    optimizer.step()
