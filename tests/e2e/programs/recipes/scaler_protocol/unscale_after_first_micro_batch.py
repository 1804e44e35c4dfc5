"""unscale_ runs after the first micro-batch of a window, inside an object; nothing is raised."""

# expect: AMP204 error source=unscale

import torch
from torch import nn

torch.manual_seed(0)


class Accumulator:
    def __init__(self, model, window):
        self.model, self.window, self.seen = model, window, 0
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def backward(self, loss):
        self.scaler.scale(loss / self.window).backward()
        if self.seen % self.window == 0:
            self.scaler.unscale_(self.optimizer)  # <- unscale
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.seen += 1
        if self.seen % self.window == 0:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
trainer = Accumulator(model, 3)
for _step in range(45):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    trainer.backward(loss)
    print(loss.item())
