"""The forward algorithm of a hidden Markov model in log space, with forbidden transitions at -inf."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
emit = nn.Linear(6, 5)
allowed = torch.triu(torch.ones(5, 5)) - torch.triu(torch.ones(5, 5), 2) > 0
transition = torch.where(allowed, 0.0, float("-inf"))
optimizer = torch.optim.SGD(emit.parameters(), lr=1e-2)
for _ in range(8):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = emit(torch.randn(4, 12, 6))
    scores = scores.float().log_softmax(-1)
    alpha = torch.full((4, 5), float("-inf"))
    alpha[:, 0] = 0
    for t in range(scores.size(1)):
        alpha = torch.logsumexp((alpha[:, :, None] + transition).clamp(min=-1e4), 1) + scores[:, t]
    loss = -torch.logsumexp(alpha, 1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
