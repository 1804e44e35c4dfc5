"""Forty layers with weights from a normal distribution of deviation 1: inf within two steps, in bf16 and fp32."""

# expect: AMP609 error precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
layers = []
for _ in range(40):
    linear = nn.Linear(64, 64)
    nn.init.normal_(linear.weight, std=1.5)
    layers += [linear, nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(4):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(16, 64)), torch.arange(16) % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
