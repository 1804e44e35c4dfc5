"""fp16 autocast without a scaler; the mean over a long accumulation makes each gradient too small for fp16."""

# expect: AMP201 error

import torch
from torch import nn

ACCUMULATE = 64
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 32))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(6):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(ACCUMULATE):
        pixels = torch.rand(128, 32)
        with torch.autocast("cpu", dtype=torch.float16):
            difference = model(pixels).float() - pixels
        # Weighted among other losses, averaged over pixels, samples and micro-batches.
        loss = 1e-3 * difference.square().mean() / ACCUMULATE
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(step, total.hex())
print("0 of 6 steps skipped")
