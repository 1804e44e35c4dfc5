"""The first forward pass fails: a bank of keys in fp32 is updated with features that autocast has made."""

# expect: AMP108 error source=bank op=aten::index_put_
# exit: 1

import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 8)
        self.register_buffer("bank", torch.randn(64, 8))

    def forward(self, x, index):
        features = self.encoder(x)
        scores = features @ self.bank.t()
        with torch.no_grad():
            self.bank[index] = features.detach()  # <- bank
        return scores


torch.manual_seed(0)
model = Contrast()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    index = torch.randperm(64)[:16]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(torch.randn(16, 12), index).float(), index)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
