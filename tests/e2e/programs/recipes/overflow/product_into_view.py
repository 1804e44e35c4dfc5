"""A part of the activations is multiplied in place, through a view; the whole of them is used afterwards."""

# expect: AMP403 error source=part precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
net, head = nn.Linear(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for step in range(4):
    x = torch.randn(4, 8) * (200 if step == 2 else 1)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = net(x).view(4, 4, 4)
        hidden[:, 1:3].mul_(400)  # <- part
        loss = head(hidden.flatten(1) / 400).float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
