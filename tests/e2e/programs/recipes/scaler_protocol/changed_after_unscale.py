"""The right neighbours: infinities are cleaned and decay is added once gradients are unscaled, and what is added before
is a gradient of the same scaled loss."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
parameters = list(model.parameters())
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(inputs)
        loss = nn.functional.cross_entropy(scores, inputs[:, :3].argmax(1))
        penalty = scores.float().square().mean() * 1e-3
    optimizer.zero_grad()
    scaler.scale(loss).backward(retain_graph=True)
    for parameter, gradient in zip(parameters, torch.autograd.grad(scaler.scale(penalty), parameters), strict=True):
        parameter.grad.add_(gradient)
    scaler.unscale_(optimizer)
    for parameter in parameters:
        torch.nan_to_num_(parameter.grad, nan=0.0, posinf=1e5, neginf=-1e5)
        parameter.grad.add_(parameter.detach(), alpha=1e-2)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
