"""LBFGS gets its closure by position: the scaler does not see it, and stops because no loss was scaled before."""

# expect: AMP220 error source=step
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
points = torch.rand(32, 2)


def closure():
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = net(points)
    loss = nn.functional.mse_loss(outputs.float(), points.prod(1, keepdim=True))
    scaler.scale(loss).backward()
    return loss


for _ in range(5):
    scaler.step(optimizer, closure)  # <- step
    scaler.update()
