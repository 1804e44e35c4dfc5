"""What may be added to gradients: terms multiplied by the scale while gradients are scaled, terms as they are after
unscale_, what was made of the gradients themselves, and in hooks a smoothed gradient."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
averages = {}


def smooth(gradient):
    averages[id(model)] = average = 0.9 * averages.get(id(model), torch.zeros_like(gradient)) + 0.1 * gradient
    return gradient + 0.5 * average


model[2].weight.register_hook(smooth)
model[0].weight.register_hook(lambda gradient: gradient - gradient.mean(1, keepdim=True))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    with torch.no_grad():
        scale = scaler.get_scale()
        model[0].bias.grad.add_(model[0].bias, alpha=1e-3 * scale)
        scaler.unscale_(optimizer)
        for parameter in model.parameters():
            parameter.grad.add_(parameter, alpha=1e-3)
            parameter.grad.add_(torch.randn_like(parameter), alpha=1e-4)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
