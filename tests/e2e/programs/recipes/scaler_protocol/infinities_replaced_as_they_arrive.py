"""A hook on every accumulated gradient cleans it in place while it is scaled."""

# expect: AMP202 error source=clean

import torch
from torch import nn


class Guard:
    def __init__(self, model):
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self.clean)

    def clean(self, parameter):
        parameter.grad.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)  # <- clean


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
guard = Guard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**22)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
