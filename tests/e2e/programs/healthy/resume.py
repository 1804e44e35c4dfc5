"""The run saves everything, makes all objects anew, restores them and goes on."""

# expect: quiet

import io

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=40)
    return model, optimizer, schedule, torch.amp.GradScaler("cpu", init_scale=2.0**21)


torch.manual_seed(0)
inputs, targets = torch.randn(128, 8), torch.randint(2, (128,))
parts = build()
for life in range(2):
    if life:
        saved = io.BytesIO()
        torch.save([part.state_dict() for part in parts], saved)
        saved.seek(0)
        parts = build()
        for part, state in zip(parts, torch.load(saved), strict=True):
            part.load_state_dict(state)
    model, optimizer, schedule, scaler = parts
    for _step in range(20):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        if scaler.get_scale() >= before:
            schedule.step()
        print(loss.item().hex(), scaler.get_scale())
