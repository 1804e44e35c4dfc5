"""Running sums beside which nothing is lost: in fp32, in Python, set to zero before they are large, a running mean in
bf16, an eps that is added to a kept tensor, a residual stream."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 2).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
window, whole, mean = torch.zeros((), dtype=torch.bfloat16), torch.zeros(()), torch.zeros(6, dtype=torch.bfloat16)
number, scale = 0.0, torch.full((6,), 4.0, dtype=torch.bfloat16)
for step in range(60):
    x = torch.randn(8, 6, dtype=torch.bfloat16) + 1
    optimizer.zero_grad()
    loss = (model(x / (scale + 1e-6)) - 1).float().square().mean()
    loss.backward()
    optimizer.step()
    window += loss.detach()
    whole += loss.detach()
    number += loss.item()
    mean += (x.mean(0) - mean) / (step + 1)
    if step % 10 == 9:
        window.zero_()
