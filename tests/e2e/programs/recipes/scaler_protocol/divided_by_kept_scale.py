"""Home-made unscaling with a scale that was read in the iteration before, after the update: in place, as a list, and by
putting quotients in the gradients' place. Their norm is measured first, and losses are logged with the same number."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))


def in_place(parameters, scale):
    for parameter in parameters:
        parameter.grad.div_(scale)


def as_list(parameters, scale):
    torch._foreach_mul_([parameter.grad for parameter in parameters], 1 / scale)


def quotients(parameters, scale):
    for parameter in parameters:
        parameter.grad = parameter.grad / scale


for divide in (in_place, as_list, quotients):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    scale = 1024.0
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    for step in range(20):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        optimizer.zero_grad()
        scaled = scaler.scale(loss)
        scaled.backward()
        norm = torch.stack([parameter.grad.norm() for parameter in parameters]).norm() / scale
        divide(parameters, scale)
        optimizer.step()
        scaler.update(scale * 2 if step % 5 == 4 else scale)
        logged = scaled.item() / scale
        scale = scaler.get_scale()
        print(logged.hex(), norm.item())
