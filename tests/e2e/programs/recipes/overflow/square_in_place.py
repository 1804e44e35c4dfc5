"""An energy term squares activations in place after a ReLU in place; nobody looked at what ReLU left there."""

# expect: AMP403 error source=square

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
for step in range(12):
    x = torch.randn(16, 8) * (1 if step < 6 else 300)
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = model[0](x)
        energy = hidden.detach().relu_()
        energy.mul_(energy)  # <- square
        loss = (
            nn.functional.cross_entropy(model[1](hidden), torch.arange(16) % 4) + 1e-6 * energy.mean(1).float().mean()
        )
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
