"""Autocast as a decorator, through an exit stack, made before the loop; and one that is off on purpose."""

# expect: quiet

import contextlib
import copy
import inspect
import pickle

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
context = torch.autocast("cpu", dtype=torch.bfloat16)
torch.autocast("cpu", dtype=torch.float16, enabled=False)


@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated():
    return nn.functional.cross_entropy(model(inputs), targets)


for step in range(12):
    if step % 3 == 0:
        loss = decorated()
    elif step % 3 == 1:
        with contextlib.ExitStack() as stack:
            stack.enter_context(context)
            loss = nn.functional.cross_entropy(model(inputs), targets)
    else:
        context.__enter__()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        context.__exit__(None, None, None)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# What a program can see of the class is what it always was.
print(inspect.signature(torch.autocast), torch.autocast.__enter__.__qualname__)
assert pickle.loads(pickle.dumps(torch.autocast)) is torch.autocast
print(copy.copy(context).fast_dtype, sorted(vars(pickle.loads(pickle.dumps(context)))))
