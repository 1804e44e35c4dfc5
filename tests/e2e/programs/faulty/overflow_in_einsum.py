"""The matching cost of a segmentation loss sums over all pixels in one fp16 product before it divides by their
number."""

# expect: AMP401 error source=cost

import torch
from torch import nn

PIXELS = 60_000


def matching_cost(masks, targets):
    positive = nn.functional.softplus(masks) + 1
    cost = torch.einsum("nc,mc->nm", positive, targets)  # <- cost
    return cost / PIXELS


torch.manual_seed(0)
query = nn.Embedding(6, 16)
pixel = nn.Conv2d(3, 16, 1)
optimizer = torch.optim.AdamW([*query.parameters(), *pixel.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
image = torch.rand(1, 3, 200, 300)
targets = (torch.rand(4, PIXELS) > 0.2).float()

for step in range(8):
    features = pixel(image).flatten(2)[0]
    with torch.autocast("cpu", dtype=torch.float16):
        masks = query.weight @ features
        cost = matching_cost(masks, targets)
        loss = cost.float().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
