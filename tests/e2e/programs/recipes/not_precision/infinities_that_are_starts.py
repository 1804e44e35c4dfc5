"""Minimum and maximum that start at infinity, beam search with -inf, early stopping with inf, top-k filtering."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(8, 30)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
best, lowest, highest = float("inf"), torch.full((30,), float("inf")), torch.full((30,), float("-inf")).half()
for _ in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(torch.randn(16, 8))
        kept = logits.topk(5).values[:, -1:]
        filtered = logits.masked_fill(logits < kept, float("-inf"))
        loss = F.cross_entropy(logits, torch.arange(16)) + 0.1 * F.kl_div(
            logits.log_softmax(-1), filtered.softmax(-1).detach(), reduction="batchmean"
        )
    with torch.no_grad():
        lowest = torch.minimum(lowest, logits.amin(0).float())
        highest = torch.maximum(highest, logits.amax(0))
        beams = torch.full((4, 30), float("-inf"))
        beams[0] = logits[0].float().log_softmax(-1)
        top = (beams + logits[:1].float().log_softmax(-1)).flatten().topk(4).values
        assert top.isfinite().all()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    best = min(best, loss.item())
