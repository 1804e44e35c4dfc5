"""Four ranks; one of them has a batch whose gradients overflow. All ranks skip together and go on."""

# expect: quiet
# launch: torch.distributed.run --nproc-per-node 4
# traces: 4

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=10)
generator = torch.Generator().manual_seed(rank)
skipped = 0
for step in range(16):
    inputs = torch.randn(16, 8, generator=generator)
    targets = torch.randint(3, (16,), generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    if rank == 2 and step == 9:
        loss = loss * 500
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    skipped += scaler.get_scale() < before
if rank == 0:
    print(f"{skipped} of 16 steps skipped")
dist.destroy_process_group()
