"""asin of a sine that a model predicts without a bound: above 1 it is NaN, in fp32 as well."""

# expect: AMP610 error source=asin op=aten::asin precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
with torch.no_grad():
    model[2].weight.mul_(0.2)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs = torch.randn(64, 5)
targets = torch.full((64, 1), 1.3)
for _step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        sine = model(inputs)
    loss = (torch.asin(sine.float()) - targets).square().mean()  # <- asin
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
