"""A gradient penalty is computed from gradients that still carry the scale."""

# expect: AMP214 error source=norm

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(12, 48), nn.Softplus(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for _step in range(25):
    real, fake = torch.randn(32, 12) + 1, torch.randn(32, 12)
    mixed = (torch.rand(32, 1) * real + torch.rand(32, 1) * fake).requires_grad_()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        score = critic(mixed)
        loss = critic(fake).float().mean() - critic(real).float().mean()
    gradients = torch.autograd.grad(scaler.scale(score.float().sum()), mixed, create_graph=True)
    norm = (gradients[0].square().sum(1) + 1e-12).sqrt()  # <- norm
    penalty = (norm - 1).square().mean()
    scaler.scale(loss + 1e-4 * penalty).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item(), penalty.item())
