"""The loss of an epoch is summed in bf16: from 256 times the loss on nothing is added."""

# expect: AMP509 warning source=sum

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 2).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
total = torch.zeros((), dtype=torch.bfloat16)
for _ in range(420):
    x = torch.randn(8, 6, dtype=torch.bfloat16)
    optimizer.zero_grad()
    loss = (model(x) - 3).square().mean().clamp(min=0.7, max=0.9)
    (loss + model(x).square().mean() * 0.1).backward()
    optimizer.step()
    total += loss.detach()  # <- sum
print(float(total) / 420)
