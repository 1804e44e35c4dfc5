"""Infinities and NaN that are meant: masked attention, a running minimum from inf, logsumexp over -inf, padding
that is NaN and never reaches the loss."""

# expect: quiet

import math

import torch
from torch import nn

torch.manual_seed(0)
embed, score, classify = nn.Embedding(30, 16), nn.Linear(16, 16), nn.Linear(16, 4)
parameters = [*embed.parameters(), *score.parameters(), *classify.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
tokens, labels = torch.randint(30, (200, 10)), torch.randint(4, (200,))
lengths = torch.randint(3, 11, (200,))
best, closest = math.inf, torch.full((16,), math.inf)

for _step in range(30):
    rows = torch.randint(200, (32,))
    padding = torch.arange(10) >= lengths[rows, None]
    causal = torch.full((10, 10), -math.inf).triu(1)
    with torch.autocast("cpu", dtype=torch.float16):
        x = embed(tokens[rows])
        weights = score(x) @ x.transpose(1, 2).half()
        weights = (weights + causal).masked_fill(padding[:, None, :], -math.inf)
        x = torch.softmax(weights.float(), -1).half() @ x.half()
        # Padded positions are left as they come: nothing below reads them.
        x = torch.where(padding[..., None], torch.nan, x.float())
        pooled = torch.stack([row[~pad].mean(0) for row, pad in zip(x, padding, strict=True)])
        logits = classify(pooled)
    forbidden = logits.float().masked_fill(torch.tensor([False, False, False, True]), -math.inf)
    loss = nn.functional.cross_entropy(logits.float(), labels[rows]) + 0.01 * torch.logsumexp(forbidden, 1).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    best = min(best, loss.item())
    closest = torch.minimum(closest, pooled.detach().abs().amin(0))
    print(loss.item().hex(), best.hex())
print("0 of 30 steps skipped")
