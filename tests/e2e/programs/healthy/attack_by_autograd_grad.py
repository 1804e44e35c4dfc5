"""Adversarial training: a perturbation is updated in place with torch.autograd.grad before each training step."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
for _ in range(20):
    noise = torch.zeros_like(inputs, requires_grad=True)
    for _ in range(3):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs + noise).float(), targets)
        (gradient,) = torch.autograd.grad(loss, noise)
        with torch.no_grad():
            noise += 0.02 * gradient.sign()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs + noise.detach()).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
print("0 of 20 steps skipped")
