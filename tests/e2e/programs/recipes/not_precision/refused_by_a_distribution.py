"""A row of the data holds infinity; the distribution that gets what the model makes of it ends the program."""

# expect: AMP608 error source=use
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)
data = torch.randn(256, 6)
data[200, 1] = torch.inf
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(30):
    batch = data[step * 16 : step * 16 + 16]
    with torch.autocast("cpu", dtype=torch.float16):
        latent = model(batch)  # <- use
    prior = torch.distributions.Normal(torch.zeros(6), torch.ones(6))
    loss = -prior.log_prob(latent.float()).sum(-1).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
