"""Targets are logarithms that numpy took of zero counts: -inf before torch sees them."""

# expect: AMP608 error source=loss|tensor precision_fault=false

import warnings

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(8):
    counts = rng.poisson(0.7 if step >= 4 else 40, (16, 4))
    target = torch.from_numpy(np.log(counts).astype(np.float32))  # <- tensor
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.randn(16, 8))
    loss = F.mse_loss(out.float(), target)  # <- loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
