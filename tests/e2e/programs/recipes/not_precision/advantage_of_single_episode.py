"""Returns are standardised over episodes; the last batch holds one."""

# expect: AMP605 error source=std precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Linear(6, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)


def standardise(returns):
    mean, std = returns.mean(), returns.std()  # <- std
    return (returns - mean) / (std + 1e-8)


for episodes in (8, 8, 8, 1):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = policy(torch.randn(episodes, 6))
    weight = standardise(torch.randn(episodes))
    loss = -(logits.float().log_softmax(-1)[:, 0] * weight).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
