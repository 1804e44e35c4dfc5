"""Other tools watch the same run: torch.profiler, anomaly detection, a dispatch mode, gradient and module hooks."""

# expect: quiet

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 36), nn.ReLU(), nn.Linear(36, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
inputs, targets = torch.randn(60, 12), torch.randint(3, (60,))
seen = {"ops": 0, "gradients": 0, "outputs": 0}


class Counting(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        seen["ops"] += 1
        return function(*arguments, **(keywords or {}))


def count(key):
    seen[key] += 1


for parameter in model.parameters():
    parameter.register_hook(lambda gradient: count("gradients"))
model.register_forward_hook(lambda *_: count("outputs"))


def train():
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())


for _ in range(5):
    train()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
    for _ in range(5):
        with record_function("user range"):
            train()
with torch.autograd.detect_anomaly(check_nan=True):
    for _ in range(5):
        train()
with Counting():
    for _ in range(5):
        train()
with FlopCounterMode(display=False) as flops:
    for _ in range(5):
        train()
print(flops.get_total_flops() > 0, seen["ops"] > 100, seen["gradients"], seen["outputs"])
print("0 of 25 steps skipped")
