"""No optimizer and no no_grad block: parameters are updated through .data, and gradients are left to be overwritten."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
inputs = torch.randn(64, 8)
targets = inputs.square().sum(1, keepdim=True) / 8
for _ in range(25):
    model.zero_grad()
    loss = nn.functional.smooth_l1_loss(model(inputs), targets)
    loss.backward()
    for parameter in model.parameters():
        parameter.data.add_(-0.1 * parameter.grad)
    print(loss.item().hex())
print("0 of 25 steps skipped")
