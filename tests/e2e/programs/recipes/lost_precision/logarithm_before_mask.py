"""A focal loss by hand in fp16: the guard of the logarithm is zero, and the one-hot target multiplies what it makes. In
fp32 the target would have had nothing to remove."""

# expect: AMP502 error source=positive op=aten::add precision_fault=true symptoms=AMP302 first=0

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for step in range(14):
    x = torch.randn(24, 6)
    target = torch.zeros(24, 5)
    target[:, step % 5] = 1.0
    # The first step's zeros all stand where the target is 0; later ones meet it.
    far = torch.full((24, 5), -30.0)
    far[:, step % 5 if step < 5 else 0] = 0.0
    with torch.autocast("cpu", dtype=torch.float16):
        p = torch.sigmoid(model(x) + far.half())
        loss = -(target.half() * torch.log(p + 1e-9)).sum(1).mean()  # <- positive
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
