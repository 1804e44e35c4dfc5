"""Spectra whose logarithm was taken without a guard, by code that is not torch's: silence is -inf in a few batches. It
is no mask; the first layer multiplies it."""

# expect: AMP608 error phase=data precision_fault=false
# needs: python:numpy

import numpy
import torch
from torch import nn

torch.manual_seed(0)
generator = numpy.random.default_rng(0)
model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for step in range(20):
    power = generator.random((16, 24), dtype=numpy.float32) + 0.01
    if step % 6 == 4:
        power[3] = 0
    with numpy.errstate(divide="ignore"):
        spectra = torch.from_numpy(numpy.log(power))
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(spectra)
    loss = nn.functional.cross_entropy(scores.float(), torch.randint(0, 4, (16,)))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
