"""The same two towers with both losses of one size, and a third whose gradients are small but fit beside them."""

# expect: quiet

import torch
from torch import nn


def tower():
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))


torch.manual_seed(0)
towers = [tower(), tower(), tower()]
optimizer = torch.optim.SGD([p for each in towers for p in each.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=4)
for _ in range(60):
    inputs, targets = torch.randn(32, 16), torch.randn(32, 4)
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = [each(inputs) for each in towers]
    losses = [(output.float() - targets).pow(2).mean() for output in outputs]
    loss = losses[0] + losses[1] + 1e-2 * losses[2]
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
