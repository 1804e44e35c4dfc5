"""Weight decay by hand is added to gradients that are still scaled: it acts a thousand times too weakly."""

# expect: AMP202 error source=decay

import torch
from torch import nn


def add_decay(parameters, weight_decay):
    for parameter in parameters:
        if parameter.ndim > 1:
            parameter.grad.add_(parameter.detach(), alpha=weight_decay)  # <- decay


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    add_decay(model.parameters(), 5e-2)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
