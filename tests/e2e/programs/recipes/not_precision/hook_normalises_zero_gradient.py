"""A hook divides a gradient by its norm, which is zero once a task has no weight."""

# expect: AMP606 error source=unit

import torch
from torch import nn

torch.manual_seed(45)


def unit(g):
    return g / g.norm()  # <- unit


trunk = nn.Linear(6, 24)
heads = nn.ModuleList([nn.Linear(24, 3) for _ in range(2)])
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.02)
for step in range(25):
    x = torch.randn(16, 6)
    y = x[:, :3].argmax(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = torch.tanh(trunk(x))
    h = h.float()
    w = [1.0, 1.0 if step < 9 else 0.0]  # the second task is switched off
    loss = 0
    for wi, hd in zip(w, heads, strict=True):
        hi = h * 1.0
        hi.register_hook(unit)  # equalise the tasks' pull on the trunk
        loss = loss + wi * nn.functional.cross_entropy(hd(hi), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss).hex())
