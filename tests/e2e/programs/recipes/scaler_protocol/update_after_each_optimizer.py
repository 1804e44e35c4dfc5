"""Two losses run backward, then each optimizer steps and updates: the second one meets another scale."""

# expect: AMP207 error source=second

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(12, 12), nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer_a, optimizer_b = torch.optim.SGD(first.parameters(), lr=0.01), torch.optim.Adam(second.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=7)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(30):
    optimizer_a.zero_grad()
    optimizer_b.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = first(inputs)
        loss_a = nn.functional.mse_loss(hidden.float(), inputs)
        loss_b = nn.functional.cross_entropy(second(hidden.detach()), targets)
    scaler.scale(loss_a).backward()
    scaler.scale(loss_b).backward()
    scaler.step(optimizer_a)
    scaler.update()
    scaler.step(optimizer_b)  # <- second
    scaler.update()
    print(step, loss_a.item(), loss_b.item())
