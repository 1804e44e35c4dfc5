"""The usual GAN loop while the scale settles: after a skip of the critic the other loss adds to its gradients."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
generator = nn.Sequential(nn.Linear(8, 64), nn.LeakyReLU(0.2), nn.Linear(64, 16))
optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
bce = nn.functional.binary_cross_entropy_with_logits
for _ in range(25):
    real = torch.randn(32, 16) + 1
    with torch.autocast("cpu", torch.float16):
        fake = generator(torch.randn(32, 8))
        of_fake, of_real = critic(fake.detach()).float(), critic(real).float()
        loss_c = bce(of_fake, torch.zeros_like(of_fake)) + bce(of_real, torch.ones_like(of_real))
    optimizer_c.zero_grad()
    scaler.scale(loss_c * 4).backward()
    scaler.step(optimizer_c)
    with torch.autocast("cpu", torch.float16):
        judged = critic(fake).float()
        loss_g = bce(judged, torch.ones_like(judged))
    optimizer_g.zero_grad()
    scaler.scale(loss_g).backward()
    scaler.step(optimizer_g)
    scaler.update()
    print(loss_c.item().hex(), loss_g.item().hex())
