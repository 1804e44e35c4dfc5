"""A mask of -1e9, right in fp32, is cast to the fp16 of the scores, and one sample has no key."""

# expect: AMP405 error source=cast precision_fault=true

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        scores = scores + mask.to(scores.dtype)  # <- cast
        return torch.softmax(scores, -1) @ self.value(x)


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(16):
    lengths = torch.randint(2, 6, (10,))
    if step == 9:
        lengths[4] = 0
    mask = (torch.arange(5) >= lengths[:, None]).float()[:, None, :] * -1e9
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(torch.randn(10, 5, 8), mask)
    loss = out.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
