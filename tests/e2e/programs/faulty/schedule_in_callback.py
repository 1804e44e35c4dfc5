"""A callback advances the schedule after every batch, whether the optimizer stepped or not."""

# expect: AMP212 warning source=schedule

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore", message="Detected call of")


class WarmUp:
    def __init__(self, optimizer, steps):
        self.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / steps))

    def on_batch_end(self):
        self.schedule.step()  # <- schedule


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
callbacks = [WarmUp(optimizer, 20)]
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=10)
inputs, targets = torch.randn(300, 10), torch.randint(2, (300,))
skipped = 0

for _ in range(60):
    rows = torch.randint(300, (50,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows], reduction="sum")
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    skipped += scaler.get_scale() < before
    for callback in callbacks:
        callback.on_batch_end()
    print(loss.item().hex(), scaler.get_scale())
print(f"{skipped} of 60 steps skipped")
