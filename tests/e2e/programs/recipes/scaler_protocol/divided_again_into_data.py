"""After unscale_ a helper that logs the norm divides by the scale once more, and puts the quotients into the gradients'
data."""

# expect: AMP205 error

import torch
from torch import nn


def true_norm(parameters, scale):
    for parameter in parameters:
        parameter.grad.data = parameter.grad.data / scale
    return nn.utils.clip_grad_norm_(parameters, 1.0)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = true_norm(parameters, scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex(), norm.item())
