"""Replicas of a model train in threads of a pool, and a trainer object that they share owns the scaler."""

# expect: AMP803 error

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
        self.lock = Lock()

    def train(self, index):
        generator = torch.Generator().manual_seed(index)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(10):
            inputs = torch.randn(16, 8, generator=generator)
            targets = torch.randint(3, (16,), generator=generator)
            with self.lock:
                self.step(model, optimizer, inputs, targets)

    def step(self, model, optimizer, inputs, targets):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.scaler.step(optimizer)
        self.scaler.update()


torch.manual_seed(0)
trainer = Trainer()
with ThreadPoolExecutor(max_workers=2) as pool:
    list(pool.map(trainer.train, range(2)))
