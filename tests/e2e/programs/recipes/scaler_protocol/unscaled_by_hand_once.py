"""The program divides by the scale itself, looks for infinities and steps without the scaler."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    inverse = 1.0 / scaler.get_scale()
    for parameter in model.parameters():
        parameter.grad.mul_(inverse)
    if all(torch.isfinite(p.grad).all() for p in model.parameters()):
        optimizer.step()
    print(step, loss.item())
