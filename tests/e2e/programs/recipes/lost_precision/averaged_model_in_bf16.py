"""torch's own AveragedModel of a bf16 model, with a decay of 0.9999."""

# expect: AMP507 error source=average

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 3)).to(torch.bfloat16)
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9999))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(30):
    optimizer.zero_grad()
    x = torch.randn(16, 8, dtype=torch.bfloat16)
    nn.functional.cross_entropy(model(x).float(), torch.arange(16) % 3).backward()
    optimizer.step()
    averaged.update_parameters(model)  # <- average
