"""A gated activation as a custom Function multiplies fp16 results by an fp32 gate that it saved."""

# expect: AMP104 warning source=mix

import torch
from torch import nn


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x * gate  # <- mix

    @staticmethod
    def backward(ctx, gradient):
        x, gate = ctx.saved_tensors
        return gradient * gate, (gradient * x).sum(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
        self.gate = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return self.head(Gate.apply(self.embed(x), self.gate))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters())
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
