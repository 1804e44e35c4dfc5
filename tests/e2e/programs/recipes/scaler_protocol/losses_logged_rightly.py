"""The scaled loss is kept, checked and divided by the scale of its own step; the loss is logged."""

# expect: quiet

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
    if not torch.isfinite(scaled):
        continue
    scaled.backward()
    print(step, scaled.item() / scaler.get_scale(), loss.item())
    scaler.step(optimizer)
    scaler.update()
    print(scaler.get_scale())
