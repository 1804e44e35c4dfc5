"""A closure given by position is not refused; its gradients are never unscaled."""

# expect: AMP220 error source=step

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))


def closure():
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    return loss


closure()
for _step in range(12):
    loss = scaler.step(optimizer, closure)  # <- step
    scaler.update()
    print(loss.item())
