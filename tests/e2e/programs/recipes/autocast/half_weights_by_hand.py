"""A layer of the program casts its weight in every call, inside autocast."""

# expect: AMP110 warning source=cast parameter=*weight

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / inputs**0.5)

    def forward(self, x):
        return nn.functional.linear(x, self.weight.to(torch.bfloat16))  # <- cast


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), Layer(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
