"""The likelihood of a mixture in fp16: an outlier has a density of zero under every component."""

# expect: AMP505 error source=density

import math

import torch
import torch.nn as nn

torch.manual_seed(8)


class MDN(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 3 * k))

    def forward(self, x):
        pi, mu, ls = self.body(x).chunk(3, -1)
        return pi.softmax(-1), mu, ls.clamp(-2, 2).exp()


def mdn_nll(pi, mu, sigma, y):
    y = y.to(mu.dtype)
    z = (y - mu) / sigma
    dens = torch.exp(-0.5 * z * z) / (sigma * math.sqrt(2 * math.pi))  # <- density
    like = (pi * dens).sum(-1)
    return -like.log().float().mean()


net = MDN()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(30):
    x = torch.rand(32, 1) * 2 - 1
    y = torch.sin(3 * x) + 0.1 * torch.randn(32, 1)
    if step in (14, 22):
        y[5] += 9.0  # an outlier
    with torch.autocast("cpu", dtype=torch.float16):
        loss = mdn_nll(*net(x), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
print(float(loss).hex())
