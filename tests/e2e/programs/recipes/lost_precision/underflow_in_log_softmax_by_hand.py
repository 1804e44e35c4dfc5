"""log(softmax(x)) in fp16: probabilities below 2^-25 are zero, their log is -inf."""

# expect: AMP505 error source=softmax op=aten::*softmax

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 6))
with torch.no_grad():
    model[2].weight.mul_(12)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256)
for step in range(10):
    x = torch.randn(32, 10) * (0.1 if step < 4 else 3)
    y = torch.randint(6, (32,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        p = model(x).softmax(dim=-1)  # <- softmax
        loss = -(p.log().gather(1, y[:, None])).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
