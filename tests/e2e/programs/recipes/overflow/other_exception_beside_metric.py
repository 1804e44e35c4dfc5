"""A metric overflows and no loss depends on it; the program ends in that step by an exception about a shape."""

# expect: AMP403 warning source=metric
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(12):
    inputs = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        outputs = model(inputs)
        perplexity = torch.exp(outputs * 100 if step == 4 else outputs).mean()  # <- metric
    if step == 4:
        outputs = outputs.view(16, 5)
    loss = nn.functional.mse_loss(outputs.float(), inputs[:, :4])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex(), perplexity.item())
