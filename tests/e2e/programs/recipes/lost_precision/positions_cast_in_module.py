"""A table of positions is right until the module is converted: model.to(bfloat16) takes the buffer along."""

# expect: AMP508 error source=convert

import torch
from torch import nn

torch.manual_seed(0)


class Sinusoid(nn.Module):
    def __init__(self, length: int, size: int) -> None:
        super().__init__()
        self.register_buffer("positions", torch.arange(length, dtype=torch.float32))
        self.register_buffer("rate", 1e4 ** (-torch.arange(0, size, 2) / size))
        self.head = nn.Linear(size, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angle = self.positions[: x.shape[1], None] * self.rate
        return self.head(x + torch.cat([angle.sin(), angle.cos()], -1))


model = Sinusoid(1024, 16).to(torch.bfloat16)  # <- convert
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    x = torch.randn(2, 1024, 16, dtype=torch.bfloat16)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x).float().flatten(0, 1), torch.randint(10, (2048,))).backward()
    optimizer.step()
