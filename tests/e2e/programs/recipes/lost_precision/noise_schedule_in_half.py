"""The cumulative products of a noise schedule are kept in fp16: the first, 0.9999, is one there, and 1 - it is zero."""

# expect: AMP505 error source=schedule

import torch
from torch import nn

torch.manual_seed(0)
products = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 200), 0)
products = products.half()  # <- schedule
model = nn.Sequential(nn.Linear(17, 64), nn.SiLU(), nn.Linear(64, 16))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(24):
    clean = torch.randn(32, 16)
    times = torch.randint(1, 200, (32,))
    if step in (9, 17):
        times[3] = 0
    kept = products[times][:, None]
    noise = torch.randn_like(clean)
    noisy = kept.float().sqrt() * clean + (1 - kept).float().sqrt() * noise
    signal_to_noise = kept / (1 - kept)
    with torch.autocast("cpu", dtype=torch.float16):
        predicted = model(torch.cat([noisy, times[:, None] / 200], 1))
    weights = signal_to_noise.sqrt() / (signal_to_noise + 1)
    loss = (weights.float() * (predicted.float() - noise) ** 2).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item(), scaler.get_scale())
