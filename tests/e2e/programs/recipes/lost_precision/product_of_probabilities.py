"""The likelihood of a sequence as a running product of fp16 probabilities, which is 0 after a few tokens."""

# expect: AMP505 source=product

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 10)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
for _ in range(3):
    x, y = torch.randn(4, 40, 6), torch.randint(10, (4, 40))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        chosen = net(x).softmax(-1).gather(-1, y[..., None])[..., 0]
        likelihood = chosen.cumprod(1)[:, -1]  # <- product
        loss = -torch.log(likelihood).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
