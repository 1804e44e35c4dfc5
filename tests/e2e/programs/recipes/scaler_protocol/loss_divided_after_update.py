"""The scaled loss is divided for the log by a scale that was read after update()."""

# expect: AMP213 warning source=log

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=8)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaled = scaler.scale(loss)
    scaled.backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, scaled.item() / scaler.get_scale())  # <- log
