"""Hooks of the parameters put zeros in the place of infinite gradients: the scaler sees none of them, and nothing is
learned where they were."""

# expect: AMP202 error source=clean

import torch
from torch import nn


def keep_finite(gradient):
    return torch.where(torch.isfinite(gradient), gradient, torch.zeros_like(gradient))  # <- clean


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
for parameter in model.parameters():
    parameter.register_hook(keep_finite)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
