"""Diffusion time steps up to 1000 multiplied with fp16-exact frequencies in bf16: half of them share an embedding."""

# expect: AMP508 error source=steps|angle

import torch
from torch import nn

torch.manual_seed(0)


class TimeEmbedding(nn.Module):
    def forward(self, t: torch.Tensor) -> torch.Tensor:
        frequencies = torch.exp(-torch.arange(8) * 0.8).bfloat16()
        angle = t[:, None] * frequencies  # <- steps
        return torch.cat([angle.sin(), angle.cos()], -1)  # <- angle


model = nn.Sequential(TimeEmbedding(), nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(8):
    t = torch.randint(1000, (64,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(t).float().square().mean()
    loss.backward()
    optimizer.step()
