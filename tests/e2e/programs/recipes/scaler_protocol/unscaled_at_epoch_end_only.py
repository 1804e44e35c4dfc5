"""A leftover group at the end of an epoch is unscaled but not stepped; the next window is refused."""

# expect: AMP204 error source=unscale
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
batches = 10

for epoch in range(3):
    for index in range(batches):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss / 4).backward()
        if (index + 1) % 4 == 0 or index + 1 == batches:
            scaler.unscale_(optimizer)  # <- unscale
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (index + 1) % 4 == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print(epoch, loss.item())
