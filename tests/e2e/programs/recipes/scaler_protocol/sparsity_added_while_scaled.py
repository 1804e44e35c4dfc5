"""An L1 term is added to gradients that are still scaled: it acts a thousand times too weakly."""

# expect: AMP202 error source=sparse

import torch
from torch import nn


@torch.no_grad()
def regularise(parameters, sparsity):
    for parameter in parameters:
        parameter.grad.sub_(parameter.sign() * -sparsity)  # <- sparse


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(30):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    regularise(model.parameters(), 1e-3)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
