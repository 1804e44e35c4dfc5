"""After a warm-up in fp32 a callback turns the model into bf16 'to save memory' and training goes on."""

# expect: AMP112 error source=cast

import torch
from torch import nn


class SaveMemory:
    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch(self, trainer, epoch):
        if epoch == self.epoch:
            for p in trainer.net.parameters():
                p.data = p.data.to(torch.bfloat16)  # <- cast


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.callbacks = [SaveMemory(2)]

    def fit(self, epochs):
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback.on_epoch(self, epoch)
            for _ in range(6):
                x, y = torch.randn(16, 12), torch.randint(5, (16,))
                loss = nn.functional.cross_entropy(self.net(x.to(self.net[0].weight.dtype)).float(), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()


torch.manual_seed(0)
Trainer().fit(4)
