"""A normalisation of one's own keeps the unbiased variance of a batch of one: training goes on, validation is NaN."""

# expect: AMP408 error source=update

import torch
from torch import nn


class OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.running_var.mul_(0.9).add_(0.1 * x.float().var(0))  # <- update
            return x / (x.float().var(0, unbiased=False) + 1e-3).sqrt()
        return x / (self.running_var + 1e-3).sqrt()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), OwnNorm(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(20):
    inputs = torch.randn(1 if step == 7 else 16, 6)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(inputs).float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
model.eval()
with torch.no_grad():
    print(model(torch.randn(4, 6)).isnan().any().item())
