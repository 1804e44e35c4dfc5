"""Gradients are cleared only where the step was taken: one overflow stays for ever."""

# expect: AMP211 error

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(40):
    x = inputs * (3000 if step == 20 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x).float(), torch.ones(64, 3))
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= before:
        optimizer.zero_grad()
    print(step, loss.item(), scaler.get_scale())
