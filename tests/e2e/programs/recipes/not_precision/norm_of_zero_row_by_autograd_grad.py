"""The derivative of a row's norm where the row is 0, in a training without backward(): torch.autograd.grad alone."""

# expect: AMP602 error source=norm first=6

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
parameters = list(model.parameters())
inputs = torch.randn(32, 5)
targets = torch.randn(32, 4)
for step in range(12):
    if step == 6:
        targets[3] = model(inputs)[3].detach()
    error = model(inputs) - targets
    loss = error.square().sum(1).sqrt().mean()  # <- norm
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient, alpha=0.05)
    print(loss.item().hex())
