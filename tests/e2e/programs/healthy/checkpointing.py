"""Activation checkpointing runs forward again inside backward, under autocast, and rightly so; both kinds of it."""

# expect: quiet

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        return x + self.layers(self.norm(x))


torch.manual_seed(0)
stem = nn.Linear(10, 32)
blocks = nn.ModuleList(Block(32) for _ in range(3))
tail = nn.Sequential(Block(32), Block(32), nn.Linear(32, 5))
parameters = [*stem.parameters(), *blocks.parameters(), *tail.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
inputs, targets = torch.randn(96, 10), torch.randint(5, (96,))
for _step in range(20):
    with torch.autocast("cpu", dtype=torch.float16):
        x = stem(inputs)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        x = checkpoint_sequential(tail, 2, x, use_reentrant=True)
        loss = nn.functional.cross_entropy(x, targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
print("0 of 20 steps skipped")
