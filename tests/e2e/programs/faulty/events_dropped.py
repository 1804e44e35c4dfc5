"""Nothing is wrong but the recorder: its buffer is far too small for the pace of the run, so events are lost."""

# expect: AMP902
# environment: AMPSCOPE_RING_BYTES=4096

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    *(layer for _ in range(8) for layer in (nn.Linear(8, 8), nn.LayerNorm(8), nn.Tanh())), nn.Linear(8, 3)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for step in range(150):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
