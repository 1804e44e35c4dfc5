"""The function that runs an epoch makes its own scaler."""

# expect: AMP215 warning source=scaler

import torch
from torch import nn

torch.manual_seed(0)


def run_epoch(model, optimizer, inputs, targets):
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)  # <- scaler
    for _batch in range(12):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return loss.item(), scaler.get_scale()


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
for epoch in range(4):
    print(epoch, *run_epoch(model, optimizer, inputs, targets))
