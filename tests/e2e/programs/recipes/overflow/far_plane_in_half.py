"""The last interval of a ray ends at 1e10, in a tensor of the type of the others: infinity in fp16."""

# expect: AMP405 error source=far precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.float16):
        density = torch.relu(model(torch.randn(16, 6)))
        depth = (torch.linspace(2.0, 6.0, 8).expand(16, 8) + torch.rand(16, 1)).half()
        steps = depth[:, 1:] - depth[:, :-1]
        far = torch.tensor([1e10], dtype=steps.dtype)
        steps = torch.cat([steps, far.expand(steps[:, :1].shape)], -1)  # <- far
        loss = torch.exp(-density * (steps * 1.5)).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
