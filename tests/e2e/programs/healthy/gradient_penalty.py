"""A gradient penalty unscales by hand and runs backward twice, the first time through autograd.grad."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(12, 48), nn.Softplus(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for _step in range(25):
    real, fake = torch.randn(32, 12) + 1, torch.randn(32, 12)
    mixed = (torch.rand(32, 1) * real + torch.rand(32, 1) * fake).requires_grad_()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        score = critic(mixed)
        loss = critic(fake).float().mean() - critic(real).float().mean()
    scaled = torch.autograd.grad(scaler.scale(score.float().sum()), mixed, create_graph=True)
    gradients = [gradient * (1.0 / scaler.get_scale()) for gradient in scaled]
    with torch.autocast("cpu", dtype=torch.float16):
        penalty = ((gradients[0].square().sum(1) + 1e-12).sqrt() - 1).square().mean()
        loss = loss + 10 * penalty
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(critic.parameters(), 10.0)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex(), penalty.item().hex())
