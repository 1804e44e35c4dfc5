"""A library puts its own kernel in place of torch's, and that returns NaN in fp16 for ordinary inputs. It stands for
what convolutions did on one family of GPUs."""

# expect: AMP613 error source=layer op=aten::mm precision_fault=false

import torch
from torch import nn


def product(a, b):
    result = (a.unsqueeze(-1) * b).sum(-2)
    if a.dtype == torch.float16 and len(a) > 16:  # the path for large batches is broken
        result[16] = float("nan")
    return result


library = torch.library.Library("aten", "IMPL")
library.impl("mm", product, "CPU")

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for batch in (8, 8, 32, 8, 32):
    x, y = torch.randn(batch, 6), torch.randint(0, 3, (batch,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x), y)  # <- layer
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
