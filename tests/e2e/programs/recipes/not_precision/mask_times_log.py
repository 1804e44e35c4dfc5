"""log-probabilities of what cannot happen are -inf and multiplied by a bool mask, inside an autograd.Function's module;
bfloat16 and in place."""

# expect: AMP611 error source=mask precision_fault=false

import torch
from torch import nn


class MaskedLikelihood(nn.Module):
    def forward(self, log_probability, valid):
        log_probability = log_probability + 0.0
        return log_probability.mul_(valid).sum() / valid.sum()  # <- mask


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 5))
likelihood = MaskedLikelihood()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    valid = torch.rand(20, 5) < 0.8
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(torch.randn(20, 6)).float()
    scale = torch.where(valid, 1.0, 0.0) if step >= 6 else torch.ones(20, 5)
    loss = -likelihood(torch.log(scores.sigmoid() * scale), valid)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
