"""The generator's loss is scaled by its own scaler, but stepped and updated through the discriminator's."""

# expect: AMP219 error source=step

import torch
from torch import nn


def half():
    return torch.autocast("cpu", dtype=torch.float16)


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
scaler_g = torch.amp.GradScaler("cpu", init_scale=4096.0)
scaler_d = torch.amp.GradScaler("cpu", init_scale=64.0)
softplus = nn.functional.softplus
for _ in range(30):
    real = torch.randn(32, 2) + 1
    with half():
        fake = generator(torch.randn(32, 4))
        loss_d = softplus(-discriminator(real).float()).mean() + softplus(discriminator(fake.detach()).float()).mean()
    optimizer_d.zero_grad()
    scaler_d.scale(loss_d).backward()
    scaler_d.step(optimizer_d)
    scaler_d.update()
    with half():
        loss_g = softplus(-discriminator(fake).float()).mean()
    optimizer_g.zero_grad()
    scaler_g.scale(loss_g).backward()
    scaler_d.step(optimizer_g)  # <- step
    scaler_d.update()
    print(loss_d.item().hex(), loss_g.item().hex())
