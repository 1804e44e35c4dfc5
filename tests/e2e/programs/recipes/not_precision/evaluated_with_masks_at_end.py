"""After the last step the model is evaluated with infinities that are meant: masked scores, the start of a minimum."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    inputs = torch.randn(32, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :5].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
model.eval()
best = torch.full((), float("inf"))
with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
    scores = model(torch.randn(64, 8))
    allowed = torch.rand(64, 5) < 0.6
    allowed[:, 0] = True
    masked = scores.masked_fill(~allowed, float("-inf"))
    best = torch.minimum(best, masked.float().softmax(1).amax(1).min())
    print(masked.argmax(1).sum().item(), best.item())
