"""Advantages are normalised by their variance, and an episode has a single step; var_mean, fp32."""

# expect: AMP605 error source=var precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
value = nn.Linear(4, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)
for episode in range(14):
    states = torch.randn(1 if episode == 8 else 10, 4)
    returns = torch.randn(states.shape[0])
    advantage = returns - value(states).squeeze(1)
    var, mean = torch.var_mean(advantage.detach())  # <- var
    weight = (advantage.detach() - mean) / (var.sqrt() + 1e-8)
    action = policy(states).log_softmax(-1)[:, 0]
    loss = -(weight * action).mean() + advantage.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
