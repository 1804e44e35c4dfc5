"""Gradient accumulation over an epoch whose length is no multiple of the window: the last window is shorter and
steps."""

# expect: quiet

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = DataLoader(TensorDataset(torch.randn(220, 12), torch.randint(3, (220,))), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=8192.0)
window = 4

for epoch in range(6):
    for index, (inputs, targets) in enumerate(data):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs), targets) / window
        scaler.scale(loss).backward()
        if (index + 1) % window == 0 or index + 1 == len(data):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        print(epoch, index, loss.item().hex())
    schedule.step()
print("0 of 18 steps skipped")
