"""A prepare call divides the gradients by the scale although unscale_ has done so."""

# expect: AMP205 error source=divide

import torch
from torch import nn

torch.manual_seed(0)


def prepare(model, scaler):
    for parameter in model.parameters():
        parameter.grad.div_(scaler.get_scale())  # <- divide


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    prepare(model, scaler)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
