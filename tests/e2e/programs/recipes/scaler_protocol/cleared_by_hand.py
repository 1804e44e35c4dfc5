"""Gradients are cleared in other ways than by the optimizer's zero_grad."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(40):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    match step % 4:
        case 0:
            model.zero_grad()
        case 1:
            for parameter in model.parameters():
                parameter.grad.zero_()
        case 2:
            for parameter in model.parameters():
                parameter.grad = None
        case 3:
            torch._foreach_zero_([p.grad for p in model.parameters()])
    print(step, loss.item())
