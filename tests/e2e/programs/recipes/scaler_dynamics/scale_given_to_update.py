"""A warm-up of the program's own: it gives update() a scale in the first steps and leaves it to the scaler then."""

# expect: quiet
# note: AMP306

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update(512.0 * (step + 1) if step < 3 else None)
    print(step, loss.item())
