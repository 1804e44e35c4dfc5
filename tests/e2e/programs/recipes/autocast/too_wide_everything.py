"""Everything of the step except backward stands in autocast blocks: data, optimizer, scaler, schedule, metric."""

# expect: quiet
# note: AMP113

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 40)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
loader = DataLoader(TensorDataset(torch.randn(160, 12), torch.randint(5, (160,))), batch_size=16)
amp = torch.autocast("cpu", dtype=torch.float16)
for _epoch in range(3):
    batches = iter(loader)
    for _ in range(10):
        with amp:
            x, y = next(batches)
            loss = nn.functional.cross_entropy(net(x).float(), y)
            scaled = scaler.scale(loss)
        scaled.backward()
        with amp:
            scaler.step(opt)
            scaler.update()
            sched.step()
            opt.zero_grad()
