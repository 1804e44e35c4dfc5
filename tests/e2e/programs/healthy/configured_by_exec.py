"""Python is patched by others too: settings by exec over the globals, print replaced, forward wrapped, another
working directory."""

# expect: quiet

import builtins
import functools
import os
import tempfile

import torch
from torch import nn

learning_rate, steps = 1.0, 1
exec("learning_rate = 1e-3\nsteps = 25")
original_print = builtins.print
builtins.print = lambda *words, **options: original_print("[rank 0]", *words, **options)
os.chdir(tempfile.gettempdir())

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(14, 28), nn.GELU(), nn.Linear(28, 7))
forward = model.forward


@functools.wraps(forward)
def autocast_forward(*inputs):
    with torch.autocast("cpu", dtype=torch.float16):
        return forward(*inputs).float()


model.forward = autocast_forward
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
for _ in range(steps):
    batch = torch.randn(32, 14)
    loss = nn.functional.cross_entropy(model(batch), batch[:, :7].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
print("0 of 25 steps skipped")
