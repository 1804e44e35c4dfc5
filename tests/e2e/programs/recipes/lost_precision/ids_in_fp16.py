"""Token ids travel through fp16 on their way to a lookup: above 2048 every second one is another token."""

# expect: AMP508 error source=ids

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(30000, 8)
head = nn.Linear(8, 4)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.1)
for _ in range(6):
    batch = torch.randint(30000, (8, 40))
    packed = torch.cat([batch.half(), torch.rand(8, 2).half()], 1)  # <- ids
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = head(table(packed[:, :40].long().clamp(max=29999)).mean(1))
        loss = nn.functional.cross_entropy(out, batch[:, 0] % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
