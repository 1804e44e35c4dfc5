"""A critic steps in every iteration and an actor accumulates four: one scaler, updated each time, serves both."""

# expect: AMP218 warning

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(6, 2), nn.Linear(6, 2)
actor_optimizer = torch.optim.SGD(actor.parameters(), lr=1e-3)
critic_optimizer = torch.optim.SGD(critic.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=5)
for iteration in range(48):
    inputs = torch.randn(32, 6)
    with torch.autocast("cpu", dtype=torch.float16):
        actor_loss = actor(inputs).float().square().mean() / 4
        critic_loss = (critic(inputs).float() - 1).square().mean()
    critic_optimizer.zero_grad()
    scaler.scale(critic_loss).backward()
    scaler.step(critic_optimizer)
    scaler.scale(actor_loss).backward()
    if iteration % 4 == 3:
        scaler.step(actor_optimizer)
    scaler.update()
    if iteration % 4 == 3:
        actor_optimizer.zero_grad()
    print(actor_loss.item().hex(), critic_loss.item().hex())
