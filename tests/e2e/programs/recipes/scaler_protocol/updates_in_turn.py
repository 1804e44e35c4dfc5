"""Each optimizer has a backward pass, a step and an update of its own in one iteration."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(12, 12), nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer_a, optimizer_b = torch.optim.SGD(first.parameters(), lr=0.01), torch.optim.Adam(second.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=7)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    for model, optimizer in ((first, optimizer_a), (second, optimizer_b)):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(inputs).float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(step, loss.item())
