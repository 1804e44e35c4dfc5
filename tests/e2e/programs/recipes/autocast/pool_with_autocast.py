"""The same pool; each worker enters autocast itself. Data are prepared in another thread."""

# expect: quiet

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
opt = torch.optim.AdamW(encoder.parameters())


def view_loss(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = encoder(x)
    return (z.float() - z.float().mean(0)).pow(2).mean()


def load(i):
    g = torch.Generator().manual_seed(i)
    return torch.randn(16, 12, generator=g) @ torch.eye(12)


with ThreadPoolExecutor(max_workers=2) as pool:
    pending = pool.submit(load, 0)
    for i in range(15):
        x = pending.result()
        pending = pool.submit(load, i + 1)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            anchor = encoder(x)
            losses = list(pool.map(view_loss, [x, x + 0.1]))
        loss = sum(losses) + anchor.float().pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
