"""Sampling by running sums: in bf16 the last one is not one, and the search ends behind the last class."""

# expect: AMP511 warning source=softmax

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 200).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(16, 8, dtype=torch.bfloat16)
    logits = model(x)
    with torch.no_grad():
        p = torch.softmax(logits, -1)  # <- softmax
        sampled = torch.searchsorted(p.cumsum(-1), torch.rand(16, 1, dtype=torch.bfloat16)).clamp(max=199)
    optimizer.zero_grad()
    nn.functional.cross_entropy(logits.float(), sampled.squeeze(1)).backward()
    optimizer.step()
