"""A trainer weights the terms of its loss from a table; accumulation, two optimizers, AdamW. One weight is in other
units than the rest, so whatever scale keeps the large term flushes the small one."""

# expect: AMP305 error

import torch
from torch import nn

WEIGHTS = {"pixels": 2e3, "prior": 1e-10}


class Trainer:
    def __init__(self):
        self.encoder = nn.Linear(24, 48)
        self.decoder = nn.Linear(48, 24)
        self.prior = nn.Sequential(nn.Linear(24, 96), nn.Tanh(), nn.Linear(96, 8))
        self.optimizers = [
            torch.optim.AdamW([*self.encoder.parameters(), *self.decoder.parameters()], lr=1e-6),
            torch.optim.AdamW(self.prior.parameters(), lr=1e-6),
        ]
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**9, growth_interval=3)

    def terms(self, x):
        yield "pixels", (self.decoder(torch.relu(self.encoder(x))).float() - x).pow(2).mean()
        yield "prior", self.prior(x).float().pow(2).mean()

    def step(self, batches):
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        for x in batches:
            with torch.autocast("cpu", dtype=torch.float16):
                loss = sum(WEIGHTS[name] * term for name, term in self.terms(x))
            self.scaler.scale(loss / len(batches)).backward()
        for optimizer in self.optimizers:
            self.scaler.step(optimizer)
        self.scaler.update()


torch.manual_seed(0)
trainer = Trainer()
for _ in range(45):
    trainer.step([torch.randn(16, 24) for _ in range(2)])
