"""Forward under bf16 autocast, backward started under fp16 autocast."""

# expect: AMP101 error source=backward

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters())
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss.backward()  # <- backward
    optimizer.step()
