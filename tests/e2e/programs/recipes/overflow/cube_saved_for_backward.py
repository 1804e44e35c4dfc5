"""A custom Function whose backward pass computes the cube of what it saved, in fp16, before it multiplies by the
gradient: no loss scale is small enough."""

# expect: AMP403 source=cube precision_fault=true

import torch
from torch import nn


class Quartic(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.float().pow(4).mul(1e-6).to(x.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        cube = x * x * x  # <- cube
        return gradient * (4e-6 * cube)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(16, 64), nn.Linear(64, 8)

    def forward(self, inputs):
        return self.head(Quartic.apply(self.first(inputs) * 40).clamp(max=50))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(torch.randn(32, 16)).float(), torch.randint(8, (32,)))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
