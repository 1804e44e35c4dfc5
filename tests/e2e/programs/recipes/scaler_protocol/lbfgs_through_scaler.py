"""LBFGS is stepped through the scaler."""

# expect: AMP220 error source=step
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))


def closure():
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    return loss


for _step in range(5):
    closure()
    scaler.step(optimizer, closure=closure)  # <- step
    scaler.update()
