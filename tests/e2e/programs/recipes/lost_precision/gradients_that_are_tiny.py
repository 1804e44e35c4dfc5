"""An auxiliary head with a weight of 1e-7 has gradients that fp16 partly flushes; its loss does not matter."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU())
main, auxiliary = nn.Linear(64, 4), nn.Linear(64, 2)
optimizer = torch.optim.AdamW([*model.parameters(), *main.parameters(), *auxiliary.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
for _ in range(24):
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = model(torch.randn(32, 16))
        loss = F.cross_entropy(main(hidden), torch.arange(32) % 4)
        loss = loss + 1e-4 * F.cross_entropy(auxiliary(hidden), torch.arange(32) % 2)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
