"""Only frozen weights are fp16; what is trained is fp32."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Linear(12, 16).half().requires_grad_(False)
adapter = nn.Linear(16, 3)
optimizer = torch.optim.AdamW(adapter.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(20):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(adapter(backbone(inputs)), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
