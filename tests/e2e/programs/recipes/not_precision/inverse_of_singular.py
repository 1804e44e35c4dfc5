"""Features of which one is twice another are whitened with the inverse of their covariance."""

# expect: AMP612 error source=inverse precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(10):
    x = torch.randn(32, 6)
    features = model(x)
    if step >= 5:
        features = torch.cat([features, torch.zeros_like(features[:, :1])], 1)
    covariance = features.T @ features / 32
    whitened = features @ torch.linalg.inv_ex(covariance).inverse  # <- inverse
    loss = (whitened - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
