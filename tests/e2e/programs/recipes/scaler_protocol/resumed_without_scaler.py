"""A run is resumed from a checkpoint that holds model and optimizer, but not the scaler."""

# expect: AMP216 warning source=scaler

import torch
from torch import nn

torch.manual_seed(0)


def build():
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer


inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
checkpoint = None
for _life in range(2):
    model, optimizer = build()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)  # <- scaler
    if checkpoint:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    for _step in range(25):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    checkpoint = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    print(loss.item(), scaler.get_scale())
