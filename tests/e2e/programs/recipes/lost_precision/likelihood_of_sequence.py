"""Probabilities of a sequence are multiplied in fp16 before the logarithm is taken."""

# expect: AMP505 source=product|log

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
for step in range(10):
    x = torch.randn(8, 30 if step >= 5 else 4, 6)
    with torch.autocast("cpu", dtype=torch.float16):
        p = model(x).softmax(-1)[..., 0]
        likelihood = p[:, 0]
        for t in range(1, p.size(1)):
            likelihood = likelihood * p[:, t]  # <- product
        loss = -likelihood.log().mean()  # <- log
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
