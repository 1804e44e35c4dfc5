"""update() is called on every micro-batch, the step only at the end of a window."""

# expect: AMP218 error source=update
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss / 4).backward()
    if (step + 1) % 4 == 0:
        scaler.step(optimizer)
        optimizer.zero_grad()
    scaler.update()  # <- update
