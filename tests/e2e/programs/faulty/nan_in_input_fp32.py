"""A sensor reports infinity once; the run is in fp32 and has no mixed precision at all."""

# expect: AMP608 error precision_fault=false

import math

import torch
from torch import nn

torch.manual_seed(0)
readings = torch.randn(40, 16, 4).tolist()
readings[22][3][1] = math.inf
readings = torch.tensor(readings)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for reading in readings.unbind():
    optimizer.zero_grad()
    loss = (model(reading) - reading).abs().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print("0 of 40 steps skipped")
