"""A trainer makes the object it was asked for and forgets to use it; validation uses its own."""

# expect: AMP114 warning source=made

import contextlib

import torch
from torch import nn


class Trainer:
    def __init__(self, model, precision):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.context = contextlib.nullcontext()
        if precision == "bf16":
            self.context = torch.amp.autocast(device_type="cpu", dtype=torch.bfloat16)  # <- made

    def step(self, inputs, targets):
        loss = nn.functional.cross_entropy(self.model(inputs), targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)), "bf16")
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(12):
    trainer.step(inputs, targets)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        trainer.model(inputs)
