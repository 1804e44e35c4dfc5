"""A contrastive loss multiplies by exp of a learned temperature that nobody limits."""

# expect: AMP403 error source=temperature precision_fault=true

import torch
from torch import nn
from torch.nn import functional as F


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(8, 16), nn.Linear(8, 16)
        self.logit_scale = nn.Parameter(torch.tensor(10.9, dtype=torch.float32))

    def forward(self, x, y):
        a, b = F.normalize(self.image(x), dim=-1), F.normalize(self.text(y), dim=-1)
        return self.logit_scale.half().exp() * (a @ b.T)  # <- temperature


torch.manual_seed(0)
model = Contrast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for _step in range(16):
    x = torch.randn(12, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(x, x)
    with torch.no_grad():
        model.logit_scale += 0.05
    loss = F.cross_entropy(logits.float() * 0.01, torch.arange(12))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
