"""Autocast is entered through an ExitStack and left only after backward."""

# expect: AMP101 error source=backward

import contextlib

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(30, 60), nn.Tanh(), nn.Linear(60, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu")
inputs, targets = torch.randn(128, 30), torch.randn(128, 3)

for step in range(30):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.autocast("cpu", dtype=torch.float16))
        prediction = model(inputs)
        loss = nn.functional.mse_loss(prediction, targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()  # <- backward
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
