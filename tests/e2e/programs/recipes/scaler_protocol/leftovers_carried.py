"""The last micro-batches of an epoch are left over and their gradients go into the next epoch's first step."""

# expect: AMP218 warning source=step

import torch
from torch import nn


class Accumulator:
    def __init__(self, every):
        self.every, self.seen = every, 0

    def new_epoch(self):
        self.seen = 0

    def ready(self):
        self.seen += 1
        return self.seen % self.every == 0


def train(net, epochs):
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
    acc = Accumulator(4)
    for _ in range(epochs):
        acc.new_epoch()
        for _ in range(10):
            x, y = torch.randn(16, 12), torch.randint(5, (16,))
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(net(x).float(), y)
                loss = loss * (1 / acc.every)
            scaler.scale(loss).backward()
            if acc.ready():
                scaler.step(opt)  # <- step
                scaler.update()
                opt.zero_grad()


torch.manual_seed(0)
train(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5)), 5)
