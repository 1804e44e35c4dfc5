"""NaN in padding that is selected away, dropout, and masks over finite values."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _step in range(25):
    inputs, targets = torch.randn(16, 10, 6), torch.randn(16, 10)
    mask = torch.arange(10) < torch.randint(4, 11, (16, 1))
    targets[~mask] = torch.nan
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(inputs).squeeze(-1).float()
    per_token = (out[mask] - targets[mask]).square()
    filled = (out - torch.where(mask, targets, 0.0)).square()
    loss = per_token.mean() + (filled * mask).sum() / mask.sum()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
