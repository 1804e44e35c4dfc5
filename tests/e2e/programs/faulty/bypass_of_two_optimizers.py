"""Two optimizers share a scaled loss; only one of them steps through the scaler."""

# expect: AMP208 error source=step

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(16, 48), nn.ReLU())
heads = nn.ModuleDict({"class": nn.Linear(48, 4), "size": nn.Linear(48, 1)})
slow = torch.optim.SGD(backbone.parameters(), lr=1e-3)
fast = torch.optim.Adam(heads.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, labels, sizes = torch.randn(200, 16), torch.randint(4, (200,)), torch.rand(200, 1)

for step in range(30):
    slow.zero_grad()
    fast.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        features = backbone(inputs)
        loss = nn.functional.cross_entropy(heads["class"](features), labels)
        loss = loss + nn.functional.mse_loss(heads["size"](features).float(), sizes)
    scaler.scale(loss).backward()
    scaler.step(slow)
    fast.step()  # <- step
    scaler.update()
    print(step, loss.item().hex())
