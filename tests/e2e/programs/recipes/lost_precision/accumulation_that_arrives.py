"""Accumulation of a few micro-batches in bf16, with rows of an embedding that are not in the batch."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 16), nn.Flatten(), nn.Linear(64, 4)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(12):
    optimizer.zero_grad()
    for _ in range(4):
        ids, y = torch.randint(20, (16, 4)), torch.randint(4, (16,))
        (nn.functional.cross_entropy(model(ids).float(), y) / 4).backward()
    optimizer.step()
