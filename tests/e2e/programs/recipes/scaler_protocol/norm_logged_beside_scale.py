"""The norm of scaled gradients is logged; the scale, read after update(), is logged beside it."""

# expect: AMP203 warning source=norm

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10)
log = []
for step in range(30):
    x, y = torch.randn(16, 12), torch.randint(5, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x).float(), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    norm = max(p.grad.abs().max() for p in net.parameters())  # <- norm
    scaler.step(opt)
    scaler.update()
    scale = scaler.get_scale()
    log.append({"step": step, "scale": scale, "norm": norm.item(), "loss": loss.item()})
