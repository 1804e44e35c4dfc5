"""A batch statistic of a last batch of one sample: the unbiased standard deviation of one is 0/0."""

# expect: AMP605 error source=std op=aten::std precision_fault=false

import torch
from torch import nn


class Standardise(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.std(0) + 1e-5)  # <- std


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), Standardise(), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
data, labels = torch.randn(97, 6), torch.randint(3, (97,))
for _epoch in range(2):
    for first in range(0, 97, 16):
        rows = slice(first, first + 16)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(data[rows])
        loss = nn.functional.cross_entropy(logits.float(), labels[rows])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
