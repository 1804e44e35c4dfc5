"""The angle between a prediction and its target: acos of a cosine that is 1 once both agree."""

# expect: AMP602 error source=angle op=aten::acos precision_fault=false

import torch
from torch import nn
from torch.nn import functional as F


class Angle(nn.Module):
    def forward(self, a, b):
        cosine = (F.normalize(a.float(), dim=-1) * F.normalize(b.float(), dim=-1)).sum(-1)
        return torch.acos(cosine.clamp(-1, 1)).mean()  # <- angle


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
angle = Angle()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs = torch.randn(64, 6)
for step in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        rotation = model(inputs)
    targets = torch.randn(64, 3)
    if step >= 12:
        # A sample on which the model is exactly right.
        targets[5] = rotation[5].detach().float()
        targets[5], rotation = (
            torch.tensor([1.0, 0.0, 0.0]),
            rotation.float().index_copy(
                0, torch.tensor([5]), rotation[5:6].float() * 0 + torch.tensor([[1.0, 0.0, 0.0]])
            ),
        )
    loss = angle(rotation, targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
