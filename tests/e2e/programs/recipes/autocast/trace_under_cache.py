"""The model is traced for export in the middle of training, under autocast as it stands."""

# expect: AMP107 warning source=trace
# exit: 1

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for step in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
        if step == 5:
            with torch.no_grad():
                exported = torch.jit.trace(model, inputs, check_trace=False)  # <- trace
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
