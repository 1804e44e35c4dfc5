"""Hooks on gradients that are right while they are scaled: masks, factors, guards against infinities, a limit that is
multiplied by the scale. And the scale of the next iteration, kept for a norm and for a loss."""

# expect: quiet

import torch
from torch import nn


class Monitor:
    def __init__(self, scaler):
        self.scaler, self.kept = scaler, {"scale": scaler.get_scale()}

    def norm(self, model):
        return torch.stack([p.grad.norm() for p in model.parameters()]).norm().item() / self.kept["scale"]

    def update(self):
        self.scaler.update()
        self.kept["scale"] = self.scaler.get_scale()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 3))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4)
mask = (torch.rand(20, 10) < 0.5).float()
model[0].weight.register_hook(lambda gradient: gradient * mask)
model[0].bias.register_hook(lambda gradient: gradient.clamp(-2.0 * scaler.get_scale(), 2.0 * scaler.get_scale()))
model[2].weight.register_hook(lambda gradient: torch.nan_to_num(gradient).clamp(min=-65504.0, max=65504.0))
model[2].bias.register_hook(lambda gradient: gradient * 0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
monitor = Monitor(scaler)
for _ in range(12):
    inputs, targets = torch.randn(16, 10), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaled = scaler.scale(loss)
    scaled.backward()
    norm = monitor.norm(model)
    scaler.step(optimizer)
    scale = scaler.get_scale()
    monitor.update()
    print(norm, scaled.item() / scale, scaler.get_scale())
