"""The model is made anew after some steps; the optimizer still holds the old parameters."""

# expect: AMP210 error source=step
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))


model = build()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(12):
    if step == 6:
        weights = model.state_dict()
        model = build()
        model.load_state_dict(weights)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # <- step
    scaler.update()
    print(step, loss.item())
