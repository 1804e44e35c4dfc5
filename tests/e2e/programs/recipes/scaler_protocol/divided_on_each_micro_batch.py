"""Every micro-batch of a window divides the sum by the scale and clips it; only after the last one it is multiplied
back, so that the first passes count for nothing."""

# expect: AMP204 error source=divide

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
inputs, targets = torch.randn(90, 12), torch.randint(3, (90,))

for step in range(20):
    for batch in range(3):
        rows = slice(30 * batch, 30 * batch + 30)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows]) / 3
        scaler.scale(loss).backward()
        inverse = 1.0 / scaler.get_scale()
        for parameter in model.parameters():
            parameter.grad.mul_(inverse)  # <- divide
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for parameter in model.parameters():
        parameter.grad.mul_(scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    print(step, loss.item())
