"""An average of weights is kept in fp32 but passed through fp16 in every update."""

# expect: AMP115 source=half

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
average = [parameter.detach().clone() for parameter in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(15):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for mean, parameter in zip(average, model.parameters(), strict=True):
            mean.mul_(0.9).add_(parameter, alpha=0.1)
            mean.copy_(mean.half())  # <- half
