"""`step % 4 == 0` steps after the first micro-batch of the run."""

# expect: AMP218 warning source=step

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(41):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss / 4).backward()
    if step % 4 == 0:
        scaler.step(optimizer)  # <- step
        scaler.update()
        optimizer.zero_grad()
    print(step, loss.item())
