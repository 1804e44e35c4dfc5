"""Gradients come from torch.autograd.grad and no parameter has a .grad: scaled, checked and applied by hand."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
parameters = list(model.parameters())
x = torch.linspace(-2, 2, 96).reshape(16, 6)
y = x.sin().sum(1, keepdim=True)
for _ in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        prediction = model(x)
    loss = (prediction.float() - y).square().mean()
    gradients = torch.autograd.grad(loss * 512.0, parameters)
    if all(gradient.isfinite().all() for gradient in gradients):
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter -= 1e-2 / 512.0 * gradient
    print(loss.item().hex())
print("0 of 40 steps skipped")
