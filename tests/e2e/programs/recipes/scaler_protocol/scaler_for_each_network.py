"""A GAN with a scaler for each network, in the right order. Generator and critic step in turn."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
D = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
sg, sd = torch.amp.GradScaler("cpu", init_scale=1024.0), torch.amp.GradScaler("cpu", init_scale=2048.0)
bce = nn.BCEWithLogitsLoss()
for it in range(30):
    real, z = torch.randn(16, 6), torch.randn(16, 4)
    with torch.autocast("cpu", dtype=torch.float16):
        fake = G(z)
        d_loss = bce(D(real).float(), torch.ones(16, 1)) + bce(D(fake.detach()).float(), torch.zeros(16, 1))
    od.zero_grad()
    sd.scale(d_loss).backward()
    sd.step(od)
    sd.update()
    if it % 2 == 0:
        with torch.autocast("cpu", dtype=torch.float16):
            g_loss = bce(D(fake).float(), torch.ones(16, 1))
        og.zero_grad()
        sg.scale(g_loss).backward()
        sg.step(og)
        sg.update()
