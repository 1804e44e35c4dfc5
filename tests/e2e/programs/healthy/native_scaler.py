"""One object scales, unscales, clips, steps and updates, in the right order; a skipped step holds the schedule
back."""

# expect: quiet

import torch
from torch import nn


class NativeScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        norm = None
        if clip_grad is not None:
            self._scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(parameters, clip_grad)
        self._scaler.step(optimizer)
        before = self._scaler.get_scale()
        self._scaler.update()
        return norm, self._scaler.get_scale() >= before

    def state_dict(self):
        return self._scaler.state_dict()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(24, 96), nn.GELU(), nn.LayerNorm(96), nn.Linear(96, 6))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=60)
loss_scaler = NativeScaler()
inputs, targets = torch.randn(512, 24), torch.randint(6, (512,))
for _step in range(50):
    rows = torch.randint(512, (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows], label_smoothing=0.1)
    optimizer.zero_grad()
    norm, stepped = loss_scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
    if stepped:
        schedule.step()
    print(loss.item().hex(), norm.item().hex(), loss_scaler.state_dict()["scale"])
