"""The same fault as in a training with an optimizer, but the weights are updated by hand from their .grad, late."""

# expect: AMP602 error source=norm first=60

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4))
inputs = torch.randn(32, 5)
targets = torch.randn(32, 4)
for step in range(70):
    if step == 60:
        targets[3] = model(inputs)[3].detach()
    distance = (model(inputs) - targets).square().sum(1).sqrt()  # <- norm
    model.zero_grad()
    distance.mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(0.05 * parameter.grad)
    print(distance.mean().item().hex())
