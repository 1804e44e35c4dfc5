"""The program gives update() the same scale after every step. When gradients overflow it cannot come down, and every
further step is skipped."""

# expect: AMP306 warning

import torch
from torch import nn


class Weighted(nn.Module):
    """A head whose gradients are given another weight on their way back."""

    def __init__(self):
        super().__init__()
        self.trunk, self.head, self.weight = nn.Linear(8, 32), nn.Linear(32, 1), 1.0

    def forward(self, inputs):
        hidden = self.trunk(inputs)
        hidden.register_hook(lambda gradient: gradient * self.weight)
        return self.head(torch.tanh(hidden))


torch.manual_seed(0)
model = Weighted()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(24):
    if step == 14:
        model.weight = 3e4
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(inputs).float(), 5 * inputs[:, :1])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update(1024.0)
    print(loss.item().hex(), scaler.get_scale())
