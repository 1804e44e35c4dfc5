"""The scale was set by hand, and far too low for a loss that is a mean over many pixels."""

# expect: AMP501

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(64, 48), nn.GELU(), nn.Linear(48, 12))
decoder = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 64))
optimizer = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=100_000)
patches = torch.rand(2000, 64)
for step in range(40):
    rows = torch.randint(2000, (512,))
    with torch.autocast("cpu", dtype=torch.float16):
        reconstruction = decoder(encoder(patches[rows]))
    loss = 1e-3 * nn.functional.mse_loss(reconstruction.float(), patches[rows])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
print("0 of 40 steps skipped")
