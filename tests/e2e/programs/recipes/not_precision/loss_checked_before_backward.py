"""Samples are not finite now and then; the program looks at its loss before backward and takes the next batch."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(83)
net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
skipped = 0
for step in range(30):
    x = torch.randn(16, 9)
    y = x[:, :1]
    if step in (7, 21):
        x[4, 2] = float("nan")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    loss = (out.float() - y).pow(2).mean()
    if not torch.isfinite(loss):
        skipped += 1
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss).hex(), skipped)
