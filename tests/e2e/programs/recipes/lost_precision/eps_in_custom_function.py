"""An own autograd Function divides by a root of a sum and guards it with 1e-9, which is nothing in fp16."""

# expect: AMP502 error source=guard op=aten::add

import torch
from torch import nn

torch.manual_seed(0)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        size = x.abs().amax(dim=-1, keepdim=True) + 1e-9  # <- guard
        ctx.save_for_backward(size)
        return x / size

    @staticmethod
    def backward(ctx, grad):
        (size,) = ctx.saved_tensors
        return grad / size


first, last = nn.Linear(12, 16, bias=False), nn.Linear(16, 3)
optimizer = torch.optim.AdamW([*first.parameters(), *last.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256)
for step in range(12):
    x = torch.randn(10, 12)
    if step == 9:
        x[0] = 0
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        y = last(Scale.apply(first(x)))
    loss = nn.functional.cross_entropy(y.float(), torch.arange(10) % 3)
    if loss.isnan():
        print("lost at", step)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
