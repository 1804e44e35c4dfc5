"""A squared activation, in place inside an autograd.Function."""

# expect: AMP403 error source=square precision_fault=true

import torch
from torch import nn


class SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone().relu_().mul_(x)  # <- square

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x.relu()


torch.manual_seed(0)
first, last = nn.Linear(6, 24), nn.Linear(24, 4)
model = nn.ModuleList([first, last])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    inputs = torch.randn(32, 6) * (1 if step < 8 else 400)
    with torch.autocast("cpu", dtype=torch.float16):
        out = last(SquaredReLU.apply(first(inputs)) * 1e-3)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
