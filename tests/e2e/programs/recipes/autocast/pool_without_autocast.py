"""The auxiliary loss of each view is computed in a pool of threads, inside the caller's autocast block."""

# expect: AMP109 warning source=work

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.AdamW(encoder.parameters())


def view_loss(x):
    z = encoder(x)  # <- work
    return (z - z.mean(0)).pow(2).mean()


with ThreadPoolExecutor(max_workers=2) as pool:
    for _ in range(15):
        views = [torch.randn(16, 12), torch.randn(16, 12)]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            anchor = encoder(views[0])
            losses = list(pool.map(view_loss, views))
            loss = sum(losses) + anchor.float().pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
