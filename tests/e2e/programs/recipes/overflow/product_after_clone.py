"""Features are cloned and weighted in place, in fp16; the weights grow until the product overflows."""

# expect: AMP403 error source=weight

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(8, 16), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
importance = torch.full((16,), 4.0, dtype=torch.float16)
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        features = encoder(torch.randn(32, 8) + 3)
        weighted = features.clone().clamp_(min=0)
        weighted.mul_(importance)
        weighted.mul_(importance)  # <- weight
        out = head(features) + 1e-4 * weighted.mean(-1, keepdim=True)
        loss = nn.functional.cross_entropy(out, torch.arange(32) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    importance *= 1.6 if step < 9 else 1.0
