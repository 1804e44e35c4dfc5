"""A running score in fp32 grows past the fp16 limit and is cast by hand for the next layer."""

# expect: AMP404 error source=cast first=13

import torch
from torch import nn

torch.manual_seed(0)
encode = nn.Linear(8, 16)
combine = nn.Linear(17, 3)
optimizer = torch.optim.AdamW([*encode.parameters(), *combine.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
visits = torch.zeros(32, 1)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(20):
    visits = visits + 5000.0
    with torch.autocast("cpu", dtype=torch.float16):
        features = encode(inputs)
        counts = visits.half()  # <- cast
        loss = nn.functional.cross_entropy(combine(torch.cat([features, 1e-4 * counts], 1)), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
