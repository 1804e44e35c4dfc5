"""A bf16 model with a small learning rate: AdamW's steps are a hundredth of the distance to the next number."""

# expect: AMP506 error source=step phase=optimizer

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, weight_decay=0)
for _ in range(40):
    x, y = torch.randn(32, 16, dtype=torch.bfloat16), torch.randint(4, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x).float(), y).backward()
    optimizer.step()  # <- step
