"""One object scales, clips, steps and updates; it clips before it unscales."""

# expect: AMP202 error source=clip

import torch
from torch import nn


class NativeScaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)

    def __call__(self, loss, optimizer, parameters, clip_grad=None, need_update=True):
        self.scaler.scale(loss).backward()
        if not need_update:
            return
        if clip_grad is not None:
            nn.utils.clip_grad_norm_(parameters, clip_grad)  # <- clip
        self.scaler.step(optimizer)
        self.scaler.update()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
loss_scaler = NativeScaler()
inputs, targets = torch.randn(512, 20), torch.randint(5, (512,))

for step in range(40):
    rows = torch.randperm(512)[:64]
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
    optimizer.zero_grad()
    loss_scaler(loss, optimizer, model.parameters(), clip_grad=0.5)
    print(step, loss.item().hex())
print("0 of 40 steps skipped")
