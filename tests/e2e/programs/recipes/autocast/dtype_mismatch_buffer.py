"""A result of autocast is put into an fp32 buffer by index; the program ends with the error."""

# expect: AMP108 error source=put
# exit: 1

import torch
from torch import nn


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 2)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x, routed):
        choice = self.gate(x).argmax(1)
        if not routed:
            return self.experts[0](x) + self.experts[1](x)
        out = torch.zeros(x.shape)
        for number, expert in enumerate(self.experts):
            chosen = choice == number
            out[chosen] = expert(x[chosen])  # <- put
        return out


torch.manual_seed(0)
model = Router()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(32, 8)
for step in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(inputs, routed=step > 5), inputs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
