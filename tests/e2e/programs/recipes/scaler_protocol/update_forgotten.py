"""step() without update() in a wrapper."""

# expect: AMP206 error source=step
# exit: 1

import torch
from torch import nn

torch.manual_seed(0)


class Engine:
    def __init__(self, model):
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def __call__(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)  # <- step


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
engine = Engine(model)
for step in range(10):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    engine(loss)
    print(step, loss.item())
