"""Nodes of a graph are added up into its embedding in fp16. One graph of the last batches has very many nodes."""

# expect: AMP402 error source=pool

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(4, 16), nn.ReLU()), nn.Linear(16, 2)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
for step in range(16):
    sizes = [30, 50, 40, 20 if step < 11 else 200_000]
    graph = torch.repeat_interleave(torch.arange(4), torch.tensor(sizes))
    with torch.autocast("cpu", dtype=torch.float16):
        nodes = encoder(torch.randn(len(graph), 4) + 1)
        pooled = nodes.new_zeros(4, 16).scatter_add_(0, graph[:, None].expand_as(nodes), nodes)  # <- pool
        loss = nn.functional.cross_entropy(head(pooled * 0.01).float(), torch.tensor([0, 1, 0, 1]))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item())
