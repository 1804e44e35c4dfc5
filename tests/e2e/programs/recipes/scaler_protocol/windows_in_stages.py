"""The number of micro-batches grows during training; the last window of each epoch is shorter."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
batches = 10

for epoch, window in enumerate([1, 2, 4, 4, 4]):
    for index in range(batches):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss / window).backward()
        if (index + 1) % window == 0 or index + 1 == batches:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    print(epoch, loss.item())
