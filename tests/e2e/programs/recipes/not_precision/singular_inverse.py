"""The gradient of an inverse of a matrix that is next to singular is beyond fp32."""

# expect: AMP612 error source=solve precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(14):
    with torch.autocast("cpu", dtype=torch.float16):
        rows = model(torch.randn(10, 6)).float()
    if step >= 8:
        # The points lie on one line.
        rows = rows[:, :1] * torch.tensor([[1.0, 2.0, 0.0, 0.0]])
        system = rows.T @ rows + 1e-38 * torch.eye(4)
    else:
        system = rows.T @ rows + torch.eye(4)
    solution = torch.linalg.solve_ex(system, torch.ones(4, 1))[0]  # <- solve
    loss = solution.square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
