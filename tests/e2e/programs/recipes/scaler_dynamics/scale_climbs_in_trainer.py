"""A margin that every example keeps from the start: the hinge is zero everywhere, in a trainer with its own scaler."""

# expect: AMP303 warning source=update

import torch
from torch import nn


class Trainer:
    def __init__(self, model, margin):
        self.model, self.margin = model, margin
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    def loss(self, anchor, near, far):
        with torch.autocast("cpu", dtype=torch.float16):
            a, n, f = self.model(anchor), self.model(near), self.model(far)
        close, apart = (a - n).float().square().sum(1), (a - f).float().square().sum(1)
        return torch.relu(close - apart + self.margin).mean()

    def fit(self, batches):
        for anchor, near, far in batches:
            self.optimizer.zero_grad(set_to_none=True)
            self.scaler.scale(self.loss(anchor, near, far)).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()  # <- update


torch.manual_seed(0)
points = torch.randn(32, 12)
batches = [(points, points + 1e-3 * torch.randn(32, 12), points + 20) for _ in range(90)]
Trainer(nn.Linear(12, 8), margin=0.1).fit(batches)
print("0 of 90 steps skipped")
