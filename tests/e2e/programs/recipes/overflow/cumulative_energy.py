"""Energies of a spectrogram are accumulated along time in half precision."""

# expect: AMP402 error source=energy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Pooling(nn.Module):
    def forward(self, x):
        energy = x.pow(2).cumsum(1)  # <- energy
        return energy[:, -1] / energy.size(1)


model = nn.Sequential(nn.Linear(20, 32), Pooling(), nn.LayerNorm(32), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(12):
    frames = torch.randn(2, 4000 if step > 7 else 200, 20) * 8
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(frames), torch.arange(2))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
