"""A monitor that is called between backward and step records the largest gradient of each layer; several optimizers."""

# expect: AMP203 warning source=look

import torch
from torch import nn

torch.manual_seed(0)


class Monitor:
    def __init__(self, modules):
        self.modules = modules
        self.history = []

    def after_backward(self):
        for module in self.modules:
            self.history.append(max(p.grad.detach().abs().max().item() for p in module.parameters()))  # <- look


encoder, head = nn.Sequential(nn.Linear(12, 32), nn.GELU()), nn.Linear(32, 3)
optimizers = [torch.optim.SGD(encoder.parameters(), lr=0.01), torch.optim.Adam(head.parameters(), lr=1e-3)]
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
monitor = Monitor([encoder, head])
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
for _step in range(25):
    for optimizer in optimizers:
        optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(head(encoder(inputs)), targets)
    scaler.scale(loss).backward()
    monitor.after_backward()
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
print(monitor.history[-1])
