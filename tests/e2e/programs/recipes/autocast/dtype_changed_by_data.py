"""One layer's memory is replaced by a half copy through .data, under two optimizers."""

# expect: AMP112 error source=assign parameter=2.weight

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.ReLU(), nn.Linear(16, 16)), nn.Linear(16, 3)
embed = nn.Linear(8, 16)
model = nn.Sequential(embed, *body, head)
first = torch.optim.SGD(embed.parameters(), lr=0.1)
second = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(14):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    for optimizer in (first, second):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (first, second):
        optimizer.step()
    if step == 7:
        body[1].weight.grad = None
        body[1].weight.data = body[1].weight.data.to(torch.bfloat16)  # <- assign
