"""Logarithms of zero and of negative numbers whose results are handled or never used; subnormal probabilities."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(40, 8), torch.randint(5, (40,))
for step in range(25):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(inputs)
    probability = F.softmax(logits.float() * 40, -1)
    entropy = torch.special.entr(probability).sum(-1).mean()
    with torch.no_grad():
        surprise = -(probability.log() * (probability > 0.5)).nan_to_num(0, 0, 0).mean()
        rate = torch.log(logits.float()).nanmean()
    loss = F.cross_entropy(logits.float(), targets) - 0.01 * entropy
    if step % 10 == 0:
        print(step, surprise.item() >= 0, rate.item() < 9)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
