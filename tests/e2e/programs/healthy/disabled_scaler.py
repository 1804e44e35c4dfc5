"""bf16: the scaler is disabled but called in full, so that one loop serves both precisions."""

# expect: quiet

import torch
from torch import nn

dtype = torch.bfloat16
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 30)
scaler = torch.amp.GradScaler("cpu", enabled=dtype == torch.float16)
data = torch.randn(128, 16)

for _step in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=dtype):
        loss = nn.functional.mse_loss(model(data).float(), data)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    print(loss.item().hex(), scaler.get_scale())
print("0 of 30 steps skipped")
