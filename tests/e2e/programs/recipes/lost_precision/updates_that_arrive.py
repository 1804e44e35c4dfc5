"""bf16 weights beside which nothing is lost: steps that are large enough, rows of an embedding and an expert that are
not used, a frozen layer, a learning rate that warms up from 0, gradients that die down."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 16)
        self.frozen = nn.Linear(16, 16).requires_grad_(False)
        self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.head = nn.Linear(16, 4)

    def forward(self, ids: torch.Tensor, expert: int) -> torch.Tensor:
        x = self.frozen(self.embedding(ids).mean(1))
        return self.head(self.experts[expert](torch.tanh(x)))


model = Model().to(torch.bfloat16)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 20, 1))
ids, y = torch.randint(30, (16, 6)), torch.randint(4, (16,))
for step in range(50):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(ids, step % 2).float(), y).backward()
    optimizer.step()
    schedule.step()
