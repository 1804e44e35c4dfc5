"""A padding mask covers a whole sample; attention with its weights returned softmaxes a row of -inf."""

# expect: AMP603 error precision_fault=false

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x, padding):
        x, _weights = self.attention(x, x, x, key_padding_mask=padding, need_weights=True)
        return self.head(x.mean(1))


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
labels = torch.randint(4, (12,))
for step in range(14):
    lengths = torch.randint(3, 9, (12,))
    if step == 8:
        lengths[4] = 0
    padding = torch.arange(8) >= lengths[:, None]
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(torch.randn(12, 8, 16), padding)
    loss = nn.functional.cross_entropy(logits.float(), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
