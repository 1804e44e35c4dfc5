"""A teacher that is not trained is kept in fp16 and given fp16 inputs, while the student trains under autocast."""

# expect: quiet

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 10)).half().eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 10))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    inputs = torch.randn(32, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        with torch.no_grad():
            wanted = teacher(inputs.half())
        loss = functional.kl_div(
            functional.log_softmax(student(inputs).float() / 2, -1),
            functional.log_softmax(wanted.float() / 2, -1),
            log_target=True,
            reduction="batchmean",
        )
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
