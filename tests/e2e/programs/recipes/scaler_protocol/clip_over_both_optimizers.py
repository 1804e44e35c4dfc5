"""The gradients of one of two optimizers are unscaled, and those of both are clipped by their norm."""

# expect: AMP202 error source=clip

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
body, head = torch.optim.AdamW(model[0].parameters(), lr=1e-3), torch.optim.SGD(model[2].parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(25):
    inputs = torch.randn(32, 8)
    model.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :3].argmax(1))
    scaler.scale(loss).backward()
    scaler.unscale_(body)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- clip
    scaler.step(body)
    scaler.step(head)
    scaler.update()
    print(loss.item().hex())
