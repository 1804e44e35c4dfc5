"""Every fold of a cross-validation has a model, an optimizer and a scaler of its own."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for fold in range(3):
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21)
    for _step in range(25):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(fold, loss.item(), scaler.get_scale())
