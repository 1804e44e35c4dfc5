"""Backward starts from a given gradient, or from a loss that the program multiplies by get_scale()."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
front, back = nn.Linear(12, 32), nn.Linear(32, 3)
optimizer = torch.optim.SGD([*front.parameters(), *back.parameters()], lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = front(inputs)
        cut = hidden.detach().requires_grad_()
        loss = nn.functional.cross_entropy(back(cut), targets)
    if step % 3 or step == 0:
        scaler.scale(loss).backward()
    else:
        (loss * scaler.get_scale()).backward()
    hidden.backward(cut.grad)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
