"""accelerate asked for fp16, which on a CPU it turns into plain fp32 by itself."""

# expect: quiet
# needs: python:accelerate

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn

set_seed(0)
accelerator = Accelerator(mixed_precision="fp16", cpu=True)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
inputs, targets = torch.randn(96, 12), torch.randint(4, (96,))
for _ in range(20):
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item().hex())
print("0 of 20 steps skipped")
