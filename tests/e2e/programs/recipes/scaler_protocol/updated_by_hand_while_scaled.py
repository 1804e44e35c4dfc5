"""Gradient descent written by hand after a scaled backward pass: what goes in is 65536 times as large."""

# expect: AMP208 error source=update

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
scaler = torch.amp.GradScaler("cpu")
learning_rate = 0.5
for _ in range(30):
    inputs = torch.randn(32, 16)
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :4].argmax(1))
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    for parameter in model.parameters():
        parameter.data.add_(parameter.grad, alpha=-learning_rate)  # <- update
    print(loss.item().hex())
