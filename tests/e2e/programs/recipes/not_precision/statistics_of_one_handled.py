"""Statistics of one element that are right: biased, or of batches that are left out; means of what is there."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
data, labels = torch.randn(65, 6), torch.randint(3, (65,))
labels[::3] = -100
for _epoch in range(3):
    for first in range(0, 65, 16):
        rows = slice(first, first + 16)
        with torch.autocast("cpu", dtype=torch.float16):
            hidden = model[:3](data[rows])
            logits = model[3](hidden)
        spread = hidden.float().var(0, unbiased=False).mean()
        if (labels[rows] == -100).all():
            continue
        loss = nn.functional.cross_entropy(logits.float(), labels[rows]) + 0.01 * spread
        with torch.no_grad():
            shown = hidden[:1].std(0).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
print(shown.item())
