"""A table of targets has a missing value; the loader hands it on."""

# expect: AMP608 error precision_fault=false

import csv
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = io.StringIO("\n".join("nan" if row == 150 else f"{(row % 17) / 17}" for row in range(200)))
targets = torch.tensor([float(row[0]) for row in csv.reader(table)])
loader = DataLoader(TensorDataset(torch.randn(200, 6), targets), batch_size=20)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(3):
    for inputs, target in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(inputs).squeeze(1).float(), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        print(loss.item().hex())
print("3 of 30 steps skipped")
