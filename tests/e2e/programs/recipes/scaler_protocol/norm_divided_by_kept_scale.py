"""The gradient norm is logged with a scale that is read after update() and used in the next iteration. Right."""

# expect: quiet

import torch
from torch import nn


class Monitor:
    def __init__(self, scaler):
        self.scaler, self.inverse, self.history = scaler, 1.0 / scaler.get_scale(), []

    def after_update(self):
        self.inverse = 1.0 / self.scaler.get_scale()

    def after_backward(self, model):
        norm = torch.norm(torch.stack([p.grad.norm() for p in model.parameters()]))
        self.history.append(norm.item() * self.inverse)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10)
monitor = Monitor(scaler)
for _ in range(30):
    x, y = torch.randn(16, 12), torch.randint(5, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x).float(), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    monitor.after_backward(net)
    scaler.step(opt)
    scaler.update()
    monitor.after_update()
