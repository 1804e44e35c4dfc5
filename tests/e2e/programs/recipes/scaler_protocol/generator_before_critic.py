"""A GAN that trains its generator first: what that loss leaves in the critic's gradients is cleared, infinities too."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17, growth_interval=10)
bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for _ in range(60):
    real = torch.randn(64, 16) + 1
    optimizer_g.zero_grad()
    with torch.autocast("cpu", torch.float16):
        fake = generator(torch.randn(64, 8))
        loss_g = bce(critic(fake).float(), ones)
    scaler.scale(loss_g).backward()
    scaler.step(optimizer_g)
    optimizer_c.zero_grad()
    with torch.autocast("cpu", torch.float16):
        loss_c = bce(critic(torch.cat([real, fake.detach().float()])).float(), torch.cat([ones, zeros]))
    scaler.scale(loss_c).backward()
    scaler.step(optimizer_c)
    scaler.update()
    print(loss_c.item().hex(), loss_g.item().hex())
