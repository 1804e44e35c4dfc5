"""A focal loss by hand in fp16: the score of a sure logit of 9 is 1, so log(1 - p) has nothing left."""

# expect: AMP505 error source=complement

import torch
from torch import nn

torch.manual_seed(0)


class Focal(nn.Module):
    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        p = torch.sigmoid(logits)
        q = 1 - p  # <- complement
        loss = -target * q.square() * p.clamp(min=1e-4).log() - (1 - target) * p.square() * q.log()
        return loss.float().mean()


model, focal = nn.Linear(8, 1), Focal()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=64)
for step in range(12):
    x = torch.randn(32, 8)
    if step == 5:
        x[0] = 14 * model.weight.detach()[0] / model.weight.detach().square().sum()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = focal(model(x)[:, 0], (torch.arange(32) % 2).half())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
