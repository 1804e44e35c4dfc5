"""Between epochs the optimizer's moments go to bf16 to make room for validation, and come back."""

# expect: AMP115 warning source=half

import torch
from torch import nn


class Offload:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def move(self, dtype):
        for state in self.optimizer.state.values():
            for key, value in state.items():
                if torch.is_tensor(value) and value.dim() > 0:
                    state[key] = value.to(dtype)  # <- half

    def __enter__(self):
        self.move(torch.bfloat16)

    def __exit__(self, *error):
        self.move(torch.float32)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters())
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for _ in range(4):
    for _ in range(5):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with Offload(optimizer), torch.no_grad():
        print(model(inputs).argmax(1).eq(targets).float().mean().item())
