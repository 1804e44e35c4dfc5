"""A target network of a value function follows by a thousandth of the difference; both are in bf16."""

# expect: AMP507 error source=target

import copy

import torch
from torch import nn

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)).to(torch.bfloat16)
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=3e-2)
tau = 1e-3
for _ in range(30):
    state, reward = torch.randn(32, 6).bfloat16(), torch.randn(32).bfloat16()
    with torch.no_grad():
        goal = reward + 0.9 * target(state).amax(1)
    optimizer.zero_grad()
    nn.functional.smooth_l1_loss(online(state).amax(1).float(), goal.float()).backward()
    optimizer.step()
    for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
        slow.data.add_(tau * (fast.data - slow.data))  # <- target
