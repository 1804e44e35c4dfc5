"""Two ranks unscale before they average, but share what they found: an overflow on one makes both skip."""

# expect: quiet
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=100)
generator = torch.Generator().manual_seed(rank)
skipped = 0
for step in range(14):
    inputs = torch.randn(16, 8, generator=generator)
    targets = torch.randint(3, (16,), generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    if rank == 1 and step == 5:
        loss = loss * 5000
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    for found in scaler._found_inf_per_device(optimizer).values():
        dist.all_reduce(found, op=dist.ReduceOp.MAX)
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad.div_(dist.get_world_size())
    before = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    skipped += scaler.get_scale() < before
if rank == 0:
    print(f"{skipped} of 14 steps skipped")
dist.destroy_process_group()
