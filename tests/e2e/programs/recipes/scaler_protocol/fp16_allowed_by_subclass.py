"""A subclass lets fp16 gradients pass, as a well-known work-around does."""

# expect: AMP209 error

import torch
from torch import nn

torch.manual_seed(0)


class Permissive(torch.amp.GradScaler):
    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        return super()._unscale_grads_(optimizer, inv_scale, found_inf, True)


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3)).half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = Permissive("cpu", init_scale=64.0)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(20):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item())
