"""Numbers are put in the place of infinite gradients before the scaler sees them, so the scale never comes down."""

# expect: AMP202 error source=clean

import torch
from torch import nn


def clean(parameters):
    for parameter in parameters:
        if parameter.grad is not None:
            torch.nan_to_num_(parameter.grad, nan=0.0, posinf=1e5, neginf=-1e5)  # <- clean


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    clean(model.parameters())
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
