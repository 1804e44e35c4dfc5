"""Rows of an embedding are normalised in place after the step. The row of the padding is all zeros: 0 / 0, which shows
in the next forward pass."""

# expect: AMP606 error source=row

import torch
from torch import nn

torch.manual_seed(0)
embedding = nn.Embedding(30, 8, padding_idx=0)
head = nn.Linear(8, 5)
optimizer = torch.optim.SGD([*embedding.parameters(), *head.parameters()], lr=0.05)
for step in range(24):
    tokens = torch.randint(1, 30, (8, 6))
    if step >= 14:
        tokens[:, 4:] = 0
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(head(embedding(tokens).mean(1)).float(), tokens[:, 0] % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for token in tokens.unique():
            row = embedding.weight[token]
            row.div_(row.norm())  # <- row
    print(loss.item())
