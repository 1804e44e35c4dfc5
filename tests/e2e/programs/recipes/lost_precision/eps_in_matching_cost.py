"""A detector's matching cost in fp16: saturated scores meet a guard of 1e-8. The loss itself stays finite."""

# expect: AMP502 warning source=cost op=aten::add

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
with torch.no_grad():
    model[2].weight.mul_(60)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256)


@torch.no_grad()
def match(logits: torch.Tensor) -> torch.Tensor:
    p = logits.sigmoid()
    negative = -(1 - p + 1e-8).log()  # <- cost
    return negative.nan_to_num(posinf=1e4).argmin(dim=1)


for _ in range(15):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(torch.randn(64, 8))
        target = nn.functional.one_hot(match(logits), 4).float()
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
