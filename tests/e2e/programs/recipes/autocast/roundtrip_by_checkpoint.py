"""A spike of the loss rolls the model back to its last checkpoint, which is kept in fp16."""

# expect: AMP115 source=load|half

import torch
from torch import nn


class Keeper:
    def __init__(self, model):
        self.model = model
        self.save()

    def save(self):
        self.state = {k: v.detach().half().clone() for k, v in self.model.state_dict().items()}  # <- half

    def roll_back(self):
        self.model.load_state_dict(self.state)  # <- load


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
keeper = Keeper(model)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(24):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 6 == 2:
        keeper.save()
    if step % 6 == 4:
        keeper.roll_back()
