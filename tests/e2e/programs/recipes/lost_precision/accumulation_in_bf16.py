"""512 micro-batches of nearly equal gradients in bf16: the sum stalls at 256 times one of them."""

# expect: AMP510 warning phase=backward

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(12, 4).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.rand(16, 12, dtype=torch.bfloat16) + 1
for _ in range(4):
    optimizer.zero_grad()
    for _ in range(512):
        (model(x) - 5).float().mean().backward()
    optimizer.step()
