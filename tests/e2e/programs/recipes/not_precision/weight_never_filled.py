"""A parameter is made of memory that nobody fills."""

# expect: AMP614 error source=shift parameter=film.shift first=0

import torch
from torch import nn

torch.manual_seed(18)
torch.use_deterministic_algorithms(True)  # fills new memory with NaN


class FiLM(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.proj = nn.Linear(c, d)
        self.scale = nn.Parameter(torch.ones(d))
        self.shift = nn.Parameter(torch.empty(d))

    def forward(self, h, c):
        return h * (self.scale + self.proj(c)) + self.shift  # <- shift


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(6, 24)
        self.film = FiLM(3, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x, c):
        return self.out(torch.relu(self.film(self.inp(x), c)))


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(20):
    x, c = torch.randn(16, 6), torch.randn(16, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x, c)
    loss = nn.functional.mse_loss(out.float(), x[:, :1] * c[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss).hex())
