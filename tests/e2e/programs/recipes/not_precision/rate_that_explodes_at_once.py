"""A rate with momentum at which the loss is a million in the third step; steps are skipped until one with a tiny
scale gets through, and then weights do not fit fp16."""

# expect: AMP609 error precision_fault=false symptoms=AMP302

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1.5, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(40):
    x = torch.randn(32, 10)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(net(x).float(), x.sum(1, keepdim=True))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
