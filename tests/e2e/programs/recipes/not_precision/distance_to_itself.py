"""A contrastive loss takes the distance of each embedding to all, itself included, inside checkpointing, in bf16."""

# expect: AMP602 error source=distance precision_fault=false

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
encoder = nn.Linear(8, 4)


def pull(z):
    difference = z[:, None] - z[None]
    return difference.pow(2).sum(-1).sqrt().mean()  # <- distance


optimizer = torch.optim.SGD(encoder.parameters(), lr=1e-2)
for _ in range(6):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = checkpoint(pull, encoder(torch.randn(8, 8)), use_reentrant=False)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
