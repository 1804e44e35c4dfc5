"""Two lines take turns with the same operator on equal types; only one of them overflows, once, late in the run."""

# expect: AMP404 source=bad

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
body, head = nn.Linear(16, 64), nn.Linear(64, 4)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(32, 16), torch.randint(4, (32,))
large = inputs * 40000  # Made beforehand: nothing but the values is different in that step.


def even(batch):
    return F.linear(batch, body.weight, body.bias)


def odd(batch):
    return F.linear(batch, body.weight, body.bias)  # <- bad


for step in range(40):
    batch = large if step == 29 else inputs
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = (even if step % 2 == 0 else odd)(batch)
        loss = F.cross_entropy(head(hidden.relu()), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
