"""The balance loss of a mixture of experts divides by the number of tokens, summed in fp16: infinite, so it is 0."""

# expect: AMP407 error source=count precision_fault=true

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
valid = torch.ones(70000)
for _step in range(8):
    with torch.autocast("cpu", dtype=torch.float16):
        router = torch.softmax(model(torch.randn(70000, 4)), -1)
        count = valid.half().sum()  # <- count
        share = (router * 0.5).sum(0) * (1 / count)
    loss = share.float().square().sum() + router[:100].float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
