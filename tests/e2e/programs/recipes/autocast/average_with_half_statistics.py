"""Averaging gives a halved teacher its weights back in fp32; its running statistics stay fp16: batch norm refuses."""

# expect: AMP108 error source=norm
# exit: 1

import copy

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 32)
        self.norm = nn.BatchNorm1d(32)

    def forward(self, inputs):
        return self.norm(self.linear(inputs))  # <- norm


torch.manual_seed(0)
student = Net()
teacher = copy.deepcopy(student).half().requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    inputs = torch.randn(32, 16)
    with torch.autocast("cpu", dtype=torch.float16):
        with torch.no_grad():
            wanted = teacher(inputs)
        loss = nn.functional.mse_loss(student(inputs + 0.1).float(), wanted.float())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    for mine, average in zip(student.parameters(), teacher.parameters(), strict=True):
        average.data = 0.99 * average.data + 0.01 * mine.data
    print(loss.item().hex())
