"""A trainer scales for its first phase only; later the loss goes to backward as it is."""

# expect: AMP219 error source=loss

import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def step(self, inputs, targets, warm):
        self.optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            output = self.model(inputs)
        loss = nn.functional.cross_entropy(output.float(), targets)  # <- loss
        if warm:
            self.scaler.scale(loss).backward()
        else:
            loss.backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))
trainer = Trainer(model)
for step in range(30):
    print(step, trainer.step(inputs, targets, step < 10))
