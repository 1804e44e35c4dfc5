"""One scaler, updated after the turn of each of two optimizers; one loss leaves gradients with the other's weights."""

# expect: quiet

import torch
from torch import nn


def half():
    return torch.autocast("cpu", dtype=torch.float16)


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
softplus = nn.functional.softplus
for _ in range(30):
    real = torch.randn(32, 2) + 1
    with half():
        fake = generator(torch.randn(32, 4))
        loss_d = softplus(-discriminator(real).float()).mean() + softplus(discriminator(fake.detach()).float()).mean()
    optimizer_d.zero_grad()
    scaler.scale(loss_d).backward()
    scaler.step(optimizer_d)
    scaler.update()
    with half():
        loss_g = softplus(-discriminator(fake).float()).mean()
    optimizer_g.zero_grad()
    scaler.scale(loss_g).backward()
    scaler.step(optimizer_g)
    scaler.update()
    print(loss_d.item().hex(), loss_g.item().hex())
