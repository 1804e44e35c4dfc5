"""The live model goes to fp16 and back at every checkpoint."""

# expect: AMP115 source=half

import torch
from torch import nn


def save(model):
    model.half()  # <- half
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.float()
    return state


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(15):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 5 == 4:
        saved = save(model)
