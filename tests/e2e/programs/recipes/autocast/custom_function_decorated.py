"""Custom Functions that take care of autocast, or have one dtype throughout."""

# expect: quiet

import torch
from torch import nn


class Project(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * s * (1 + x * (1 - s))


torch.manual_seed(0)
weight = nn.Parameter(torch.randn(8, 8) / 3)
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD([weight, *head.parameters()], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for _ in range(10):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(head(Swish.apply(Project.apply(inputs, weight))), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
