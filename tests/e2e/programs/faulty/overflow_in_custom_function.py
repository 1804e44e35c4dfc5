"""A matrix product inside a custom autograd Function overflows from one step on."""

# expect: AMP401 error source=product first=12

import torch
from torch import nn


class Projection(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float16)
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()  # <- product

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(10, 64)
        self.weight = nn.Parameter(torch.randn(64, 64))
        self.classify = nn.Linear(64, 3)

    def forward(self, x, gain):
        x = torch.relu(self.embed(x)) * gain
        return self.classify(Projection.apply(x, self.weight) / gain)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(64, 10), torch.randint(3, (64,))
for step in range(20):
    # A curriculum that raises the gain in one jump.
    gain = 1.0 if step < 12 else 8000.0
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs, gain), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
