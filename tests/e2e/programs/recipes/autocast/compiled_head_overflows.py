"""The scaled gradients of a compiled loss in fp32 do not fit into the fp16 that their derivative was traced in."""

# expect: AMP106 error op=torch.compile

import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(8, 16)
        self.weight = nn.Parameter(torch.randn(24, 16) / 4)

    @torch.autocast("cpu", enabled=False)
    def scores(self, hidden):
        return torch.mm(hidden.float(), self.weight.t()) * 1000.0

    def forward(self, x):
        return self.scores(torch.tanh(self.encode(x)))


torch.manual_seed(0)
model = Scores()
step = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
inputs, targets = torch.randn(32, 8), torch.randn(32, 24)
for _ in range(14):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = (step(inputs) - targets).pow(2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
