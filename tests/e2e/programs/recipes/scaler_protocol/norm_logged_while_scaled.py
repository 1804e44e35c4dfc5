"""The norm of the gradients is logged before they are unscaled: it doubles whenever the scale does."""

# expect: AMP203 warning source=norm

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=10)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    norm = torch.cat([p.grad.norm().view(1) for p in model.parameters()]).norm()  # <- norm
    scaler.step(optimizer)
    scaler.update()
    print(step, norm.item())
