"""Adam with a rate far too high: the activations of a regression grow every few steps until fp16 ends."""

# expect: AMP609 error precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.5), nn.Linear(32, 32), nn.LeakyReLU(0.5), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=6.0)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**-2)
for _ in range(60):
    x = torch.randn(64, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
    loss = torch.nn.functional.smooth_l1_loss(out.float(), x.sum(1, keepdim=True).neg())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
