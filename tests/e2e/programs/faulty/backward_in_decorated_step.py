"""The whole training step is decorated with autocast."""

# expect: AMP101 error source=backward

import torch
from torch import nn


class Lit:
    def __init__(self):
        self.encoder = nn.Linear(24, 8)
        self.decoder = nn.Linear(8, 24)
        self.optimizer = torch.optim.Adagrad([*self.encoder.parameters(), *self.decoder.parameters()], lr=0.05)

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def step(self, batch):
        reconstruction = self.decoder(torch.relu(self.encoder(batch)))
        loss = nn.functional.mse_loss(reconstruction.float(), batch)
        self.optimizer.zero_grad()
        loss.backward()  # <- backward
        self.optimizer.step()
        return loss.item()


torch.manual_seed(0)
lit = Lit()
data = torch.randn(256, 24)
for epoch in range(5):
    for start in range(0, 256, 64):
        print(epoch, lit.step(data[start : start + 64]).hex())
