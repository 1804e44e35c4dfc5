"""The derivative of a logarithm divides scaled gradients by small probabilities: too large for fp16 while the scale is
on its way down, and zero where the target is."""

# expect: quiet
# note: AMP301

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 20))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)
pattern = (torch.rand(4, 20) > 0.6).float()
for _ in range(40):
    target = pattern[torch.randint(0, 4, (16,))]
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        p = torch.sigmoid(model(torch.randn(16, 12)))
        loss = -torch.sum(target * torch.log(p + 0.01) + (1 - target) * torch.log(1 - p + 0.01))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
