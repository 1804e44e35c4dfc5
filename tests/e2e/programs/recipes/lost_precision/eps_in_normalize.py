"""A metric head normalises fp16 embeddings; a padded row is all zero and the guard of 1e-12 is nothing in fp16."""

# expect: AMP502 error source=normalise op=aten::clamp_min precision_fault=true

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(16, 24, bias=False)
        self.classes = nn.Parameter(torch.randn(5, 24))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = F.normalize(self.embed(x), dim=-1)  # <- normalise
        return 10 * features.float() @ F.normalize(self.classes, dim=-1).t()


model = Head()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024)
for step in range(20):
    x = torch.randn(8, 16)
    if step >= 7:
        x[3] = 0
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(model(x), torch.arange(8) % 5)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
