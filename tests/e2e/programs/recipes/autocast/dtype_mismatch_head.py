"""A head outside the autocast block is given fp16 features; the loop catches the error and goes on."""

# expect: AMP108 error source=head op=aten::linear

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
head = nn.Linear(16, 3)
optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()])
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        features = backbone(inputs)
    try:
        logits = head(features)  # <- head
    except RuntimeError:
        logits = head(features.float())
    loss = nn.functional.cross_entropy(logits, targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
