"""A recurrent network explodes within few steps, at a learning rate that is too high for its momentum."""

# expect: AMP609 error

import torch
from torch import nn

torch.manual_seed(20)


class Cell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.x, self.h = nn.Linear(i, h), nn.Linear(h, h, bias=False)

    def forward(self, x, h):
        return torch.relu(self.x(x) + self.h(h))


cell, out = Cell(3, 16), nn.Linear(16, 1)
ps = [*cell.parameters(), *out.parameters()]
opt = torch.optim.SGD(ps, lr=0.08, momentum=0.9)
for _ in range(60):
    x = torch.randn(32, 8, 3)
    h = torch.zeros(32, 16)
    if True:
        for t in range(x.size(1)):
            h = cell(x[:, t], h)
        y = out(h)
    loss = (y.float() - 4 * x.sum((1, 2))[:, None]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss).hex())
