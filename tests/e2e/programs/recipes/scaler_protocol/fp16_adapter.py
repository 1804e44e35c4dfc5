"""The trained adapter was loaded in fp16 beside a frozen backbone."""

# expect: AMP209 error source=step
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Linear(12, 16).half().requires_grad_(False)
adapter = nn.Linear(16, 3).half()
optimizer = torch.optim.AdamW(adapter.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(10):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(adapter(backbone(inputs)), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # <- step
    scaler.update()
    print(step, loss.item())
