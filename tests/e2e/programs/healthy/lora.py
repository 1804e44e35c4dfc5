"""A frozen fp16 base with fp32 adapters. B starts at zero, so A has exactly zero gradients in the first step; frozen
parameters are handed to the optimizer and never get a gradient."""

# expect: quiet

import torch
from torch import nn


class LoraLinear(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x):
        return self.base(x) + 2.0 * self.lora_B(self.lora_A(x))


torch.manual_seed(0)
base = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8))
base.requires_grad_(False).half()
model = nn.Sequential(*(LoraLinear(layer) if isinstance(layer, nn.Linear) else layer for layer in base))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
inputs, targets = torch.randn(256, 32), torch.randint(8, (256,))

for _step in range(40):
    rows = torch.randint(256, (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(loss.item().hex())
