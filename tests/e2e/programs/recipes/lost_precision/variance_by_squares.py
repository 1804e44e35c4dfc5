"""A normalisation that takes its variance as the mean of the squares less the square of the mean, in fp16: for features
far from zero the difference is no more than their rounding, and may be negative."""

# expect: AMP610 error source=difference op=aten::sub precision_fault=true

import torch
from torch import nn


class Standardise(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(0)
        variance = (x * x).mean(0) - mean * mean  # <- difference
        return (x - mean) * torch.rsqrt(variance + 1e-5)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 48), Standardise(), nn.Linear(48, 4))
nn.init.constant_(model[0].bias, 30.0)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
for _ in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(32, 16) * 0.3).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
