"""The right neighbour: one autocast block a step, in which the cache serves two passes, and validation now and then."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
inputs = torch.randn(64, 8)
targets = inputs[:, :3].argmax(1)
for step in range(30):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        if step % 10 == 0:
            loss = loss + nn.functional.cross_entropy(model(inputs + 0.1 * torch.randn(64, 8)), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 10 == 9:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            model(inputs)
    print(loss.item().hex())
