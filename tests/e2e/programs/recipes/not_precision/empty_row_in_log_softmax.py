"""Actions that are not allowed are masked with -inf, and in one state none is."""

# expect: AMP603 error source=policy precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    allowed = torch.rand(32, 5) < 0.7
    allowed[:, 0] = True
    if step == 10:
        allowed[13] = False
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(torch.randn(32, 6))
    scores = torch.where(allowed, scores.float(), -torch.inf)
    policy = torch.log_softmax(scores, -1)  # <- policy
    loss = -policy.gather(
        1, allowed.float().multinomial(1) if allowed.any(1).all() else torch.zeros(32, 1).long()
    ).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
