"""The live model is cast to bf16 for validation and stays so."""

# expect: AMP112 error source=cast first=6

import torch
from torch import nn


def validate(model, x):
    model.bfloat16()  # <- cast
    with torch.no_grad():
        return model(x.bfloat16()).float().mean().item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(14):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5:
        validate(model, inputs)
