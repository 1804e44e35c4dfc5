"""Two optimizers, one scaler: the generator's backward leaves scaled gradients in the discriminator, and only one
of the two may skip."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
discriminator = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
scaler = torch.amp.GradScaler("cpu")
criterion = nn.BCEWithLogitsLoss()
mixing = torch.randn(4, 16)

for _step in range(40):
    real = torch.randn(64, 4) @ mixing
    noise = torch.randn(64, 8)

    optimizer_d.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        fake = generator(noise)
        loss_d = criterion(discriminator(real), torch.ones(64, 1))
        loss_d = loss_d + criterion(discriminator(fake.detach()), torch.zeros(64, 1))
    scaler.scale(loss_d).backward()
    scaler.step(optimizer_d)

    optimizer_g.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss_g = criterion(discriminator(fake), torch.ones(64, 1))
    scaler.scale(loss_g).backward()
    scaler.step(optimizer_g)
    scaler.update()
    print(loss_d.item().hex(), loss_g.item().hex(), scaler.get_scale())
