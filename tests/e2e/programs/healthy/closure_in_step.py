"""As a well-known trainer does it: backward runs inside the closure, before scaler.step, and the closure is not
handed on. An LBFGS run in fp32 beside it evaluates its closure several times a step."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
inputs = torch.randn(80, 10)
targets = inputs.sum(1, keepdim=True).sin()


def closure():
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs).float(), targets)
    scaler.scale(loss).backward()
    return loss


for _step in range(20):
    loss = closure()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())

line = nn.Linear(10, 1)
exact = torch.optim.LBFGS(line.parameters(), max_iter=4)


def evaluate():
    exact.zero_grad()
    loss = nn.functional.mse_loss(line(inputs), inputs.sum(1, keepdim=True))
    loss.backward()
    return loss


for _step in range(3):
    print(exact.step(evaluate).item().hex())
