"""The head leaves autocast inside a compiled model; its derivative is traced under the autocast around the call."""

# expect: AMP106 warning op=torch.compile

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        with torch.autocast("cpu", enabled=False):
            return self.head(hidden.float())


torch.manual_seed(0)
model = Net()
compiled = torch.compile(model, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(8):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(compiled(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
