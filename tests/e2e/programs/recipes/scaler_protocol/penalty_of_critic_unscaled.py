"""A gradient penalty as PyTorch's notes on AMP have it, in a training of a critic and a generator: the gradients are
unscaled before the penalty. Several critic steps for each of the generator."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16))
critic = nn.Sequential(nn.Linear(16, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0.0, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


def penalty(real, fake):
    mix = torch.rand(real.size(0), 1)
    inputs = (mix * real + (1 - mix) * fake).requires_grad_(True)
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = critic(inputs)
    (scaled,) = torch.autograd.grad(scaler.scale(outputs.sum()), inputs, create_graph=True)
    gradients = scaled * (1.0 / scaler.get_scale())
    with torch.autocast("cpu", dtype=torch.float16):
        return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


for _ in range(16):
    for _ in range(3):
        real = torch.randn(32, 16) * 0.5 + 1
        with torch.autocast("cpu", dtype=torch.float16), torch.no_grad():
            fake = generator(torch.randn(32, 8))
        fake = fake.float()
        critic_optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            distance = critic(fake).mean() - critic(real).mean()
        loss = distance + 10 * penalty(real, fake)
        scaler.scale(loss).backward()
        scaler.step(critic_optimizer)
        scaler.update()
    generator_optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = -critic(generator(torch.randn(32, 8))).mean()
    scaler.scale(loss).backward()
    scaler.step(generator_optimizer)
    scaler.update()
    print(distance.item().hex(), loss.item().hex())
