"""A scaler is updated after each of two optimizers, and doubles so often that one of them overflows."""

# expect: AMP207 error

import torch
from torch import nn

torch.manual_seed(0)


class Multi:
    def __init__(self, nets):
        self.opts = [torch.optim.AdamW(n.parameters(), lr=1e-3) for n in nets]
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=4)

    def step(self, loss):
        for o in self.opts:
            o.zero_grad()
        self.scaler.scale(loss).backward()
        for o in self.opts:
            self.scaler.step(o)
            self.scaler.update()


enc, dec = nn.Linear(12, 8), nn.Linear(8, 12)
multi = Multi([enc, dec])
for _ in range(30):
    x = torch.randn(16, 12)
    with torch.autocast("cpu", dtype=torch.float16):
        out = dec(torch.relu(enc(x)))
    multi.step((out.float() - x).pow(2).mean())
