"""A metric counts right answers and samples in buffers that .half() has taken along: both stop at 2048."""

# expect: AMP509 warning source=right|count

import torch
from torch import nn


class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("right", torch.zeros(1))
        self.register_buffer("count", torch.zeros(1))

    def update(self, logits, labels):
        self.right += (logits.argmax(1) == labels).sum()  # <- right
        for _ in labels:
            self.count = self.count + 1  # <- count


torch.manual_seed(0)
model = nn.Linear(8, 2)
metric = Accuracy().half()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    for _ in range(20):
        x = torch.randn(128, 8)
        metric.update(model(x), (x[:, 0] > 0).long())
print(metric.right / metric.count)
