"""A window ends when enough tokens have been seen, and each loss is divided by what the window holds. Right."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(50, 16), nn.Linear(16, 50)
params = [*embed.parameters(), *head.parameters()]
opt = torch.optim.AdamW(params, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
generator = torch.Generator().manual_seed(1)
lengths = [int(n) for n in torch.randint(40, 70, (90,), generator=generator)]
window, tokens = [], 0
for length in lengths:
    window.append(torch.randint(50, (length,), generator=generator))
    tokens += length
    if tokens < 200:
        continue
    for ids in window:
        with torch.autocast("cpu", dtype=torch.float16):
            logits = head(embed(ids[:-1]))
            loss = nn.functional.cross_entropy(logits.float(), ids[1:], reduction="sum") / tokens
        scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    window, tokens = [], 0
