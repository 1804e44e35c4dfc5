"""A transcript is longer than the frames of its recording."""

# expect: AMP607 error source=ctc precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(14):
    frames, lengths = torch.full((4,), 12), torch.randint(2, 5, (4,))
    if step == 8:
        frames[2], lengths[2] = 3, 5
    targets = torch.randint(1, 8, (4, 5))
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(torch.randn(12, 4, 6))
    loss = nn.functional.ctc_loss(scores.float().log_softmax(-1), targets, frames, lengths)  # <- ctc
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
