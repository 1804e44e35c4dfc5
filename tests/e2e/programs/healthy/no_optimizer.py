"""No optimizer object at all: parameters are updated by hand under no_grad."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
x = torch.linspace(-2, 2, 96).reshape(16, 6)
y = x.sin().sum(1, keepdim=True)
for _step in range(60):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        prediction = model(x)
    loss = (prediction.float() - y).square().mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 1e-2 * parameter.grad
    print(loss.item().hex())
