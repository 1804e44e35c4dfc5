"""Compiled regions whose derivatives compute in the types of their operators: autocast inside the region, a region
that stays in autocast, and a backward pass that is traced without it."""

# expect: quiet

import torch
from torch import nn


class Inside(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = torch.relu(self.body(x))
        return self.head(hidden.float())


class Leaves(Inside):
    def forward(self, x):
        hidden = torch.relu(self.body(x))
        with torch.autocast("cpu", enabled=False):
            return self.head(hidden.float())


torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
models = [Inside(), plain, Leaves()]
optimizer = torch.optim.SGD([p for model in models for p in model.parameters()], lr=0.1)
inside, stays = (torch.compile(model, backend="aot_eager") for model in models[:2])
leaves = torch.compile(models[2], backend="aot_eager")
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(6):
    outside = inside(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = outside + stays(inputs)
        with torch._functorch.config.patch(backward_pass_autocast="off"):
            logits = logits + leaves(inputs)
        loss = nn.functional.cross_entropy(logits, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
