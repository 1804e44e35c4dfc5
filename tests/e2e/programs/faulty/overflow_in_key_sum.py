"""Linear attention sums its keys over a long sequence in fp16."""

# expect: AMP402 error source=keys

import torch
from torch import nn


class LinearAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        query = nn.functional.elu(self.query(x)) + 1
        key = nn.functional.elu(self.key(x)) + 1
        context = key.transpose(1, 2).float() @ self.value(x).float() / x.shape[1]
        normaliser = key.sum(1, keepdim=True)  # <- keys
        return (query.float() @ context) / (query * normaliser / x.shape[1]).sum(-1, keepdim=True)


torch.manual_seed(0)
attention = LinearAttention(16)
with torch.no_grad():
    attention.key.bias.fill_(12.0)
optimizer = torch.optim.Adam(attention.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
sequence = torch.randn(2, 8192, 16)
for step in range(5):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (attention(sequence).float() - sequence).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
