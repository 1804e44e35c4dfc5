"""The program looks at its loss and stops where it is not finite: no backward pass follows the overflow."""

# expect: AMP403 error source=powers

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
for step in range(40):
    inputs = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs) + (0.0 if step < 20 else 17.0)
        powers = torch.exp2(outputs)  # <- powers
        loss = (powers.float() - outputs.float()).mean()
    if not torch.isfinite(loss):
        print("stopped at", step)
        break
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
