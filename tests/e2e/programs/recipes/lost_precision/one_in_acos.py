"""Angles between unit vectors in fp16: the clamp to 1 - 1e-7 is a clamp to 1, where acos has no finite derivative."""

# expect: AMP503 error source=clamp op=aten::clamp precision_fault=true

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=256)
for step in range(14):
    x = torch.randn(16, 6)
    other = torch.randn(16, 6)
    if step >= 6:
        other[2] = x[2]
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        cosine = F.cosine_similarity(model(x), model(other))
        angle = torch.acos(cosine.clamp(-1 + 1e-7, 1 - 1e-7))  # <- clamp
        loss = angle.float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
