"""A bf16 model with everything that lies still for a reason: frozen layers, rows not in the batch, a warm-up from 0,
a schedule that ends at 0, experts that sleep."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
embedding, frozen = nn.Embedding(400, 16), nn.Linear(16, 16).requires_grad_(False)
experts, head = nn.ModuleList(nn.Linear(16, 16) for _ in range(3)), nn.Linear(16, 4)
model = nn.ModuleList([embedding, frozen, experts, head]).to(torch.bfloat16)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
schedule = LambdaLR(optimizer, lambda step: min(step / 15, max(0.0, (40 - step) / 25)))
for step in range(44):
    ids, y = torch.randint(20, (16, 5)), torch.randint(4, (16,))
    hidden = frozen(embedding(ids).mean(1))
    hidden = hidden + experts[step % 2](hidden)
    loss = F.cross_entropy(head(hidden).float(), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
