"""A softmax written by hand, with its largest score taken off first, over rows that a mask has emptied; fp32."""

# expect: AMP603 error source=shift precision_fault=false

import torch
from torch import nn


def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, float("-inf"))
    scores = (scores - scores.amax(-1, keepdim=True)).exp()  # <- shift
    return scores / scores.sum(-1, keepdim=True)


torch.manual_seed(0)
query, key, head = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
model = nn.ModuleList([query, key, head])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(14):
    x = torch.randn(6, 5, 8)
    mask = torch.rand(6, 5, 5) < 0.9
    mask |= torch.eye(5, dtype=torch.bool)
    if step == 7:
        mask[2, 3] = False
    x = masked_softmax(query(x) @ key(x).transpose(1, 2), mask) @ x
    loss = head(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
