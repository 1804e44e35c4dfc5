"""A trainer with callbacks: the clipping callback runs before the one that unscales."""

# expect: AMP202 error source=clip

import torch
from torch import nn


class Callback:
    def after_backward(self, trainer): ...


class Clip(Callback):
    def __init__(self, limit):
        self.limit = limit

    def after_backward(self, trainer):
        total = torch.sqrt(sum(p.grad.pow(2).sum() for p in trainer.model.parameters()))
        factor = (self.limit / (total + 1e-6)).clamp(max=1.0)
        for p in trainer.model.parameters():
            p.grad.mul_(factor)  # <- clip


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, batches):
        for x, y in batches:
            self.optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = self.loss(self.model(x), y)
            self.scaler.scale(loss).backward()
            for callback in self.callbacks:
                callback.after_backward(self)
            self.scaler.step(self.optimizer)
            self.scaler.update()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 5))
data = [(torch.randn(16, 12), torch.randint(5, (16,))) for _ in range(25)]
Trainer(net, [Clip(0.5)]).fit(data)
