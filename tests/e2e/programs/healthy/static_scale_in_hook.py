"""A fixed loss scale by hand: hooks divide each gradient when it has been accumulated."""

# expect: quiet

import torch
from torch import nn

SCALE = 512.0
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def divide(parameter):
    parameter.grad.mul_(1 / SCALE)


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(divide)
for _ in range(25):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    (loss * SCALE).backward()
    optimizer.step()
    print(loss.item().hex())
