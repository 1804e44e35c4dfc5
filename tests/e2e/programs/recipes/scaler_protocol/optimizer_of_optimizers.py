"""An optimizer that only hands on to two others, one for matrices and one for vectors: each iteration is one step."""

# expect: quiet

import torch
from torch import nn


class Chain(torch.optim.Optimizer):
    def __init__(self, *chained):
        super().__init__([group for each in chained for group in each.param_groups], {})
        self.chained = chained

    @torch.no_grad()
    def step(self, closure=None):
        for each in self.chained:
            each.step()

    def zero_grad(self, set_to_none=True):
        for each in self.chained:
            each.zero_grad(set_to_none)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 1))
matrices = [p for p in model.parameters() if p.ndim == 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
optimizer = Chain(torch.optim.SGD(matrices, lr=0.02, momentum=0.9), torch.optim.AdamW(vectors, lr=1e-3))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=25)
skipped = 0
for _ in range(60):
    inputs = torch.randn(32, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs).float(), inputs.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
    optimizer.zero_grad()
    print(loss.item().hex())
print(f"{skipped} of 60 steps skipped")
