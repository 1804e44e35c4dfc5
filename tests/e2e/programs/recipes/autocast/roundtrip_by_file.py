"""The best weights are written to a file in fp16 and loaded back into the model that trains on."""

# expect: AMP115 warning source=half|load

import io

import torch
from torch import nn


def write(model):
    file = io.BytesIO()
    torch.save({name: value.half() for name, value in model.state_dict().items()}, file)  # <- half
    file.seek(0)
    return file


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 30), nn.Tanh(), nn.Linear(30, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    inputs = torch.randn(32, 10)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(model(inputs).float(), inputs[:, :2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 5:
        best = write(model)
    if step == 8:
        model.load_state_dict(torch.load(best))  # <- load
