"""A moving average of the weights is swapped in for validation and back; validation runs forward that gets no
backward."""

# expect: quiet

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2048.0)
inputs, targets = torch.randn(640, 20), torch.randint(10, (640,))


def validate():
    model.eval()
    kept = copy.deepcopy(model.state_dict())
    model.load_state_dict(average.state_dict())
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs[512:]), targets[512:])
        hits = (average(inputs[512:]).argmax(1) == targets[512:]).sum()
    model.load_state_dict(kept)
    model.train()
    return loss.item(), hits.item()


for _epoch in range(3):
    for start in range(0, 512, 64):
        rows = slice(start, start + 64)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs[rows]), targets[rows])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.1)
            for slow, fast in zip(average.buffers(), model.buffers(), strict=True):
                slow.copy_(fast)
        print(loss.item().hex())
    print(validate())
print("0 of 24 steps skipped")
