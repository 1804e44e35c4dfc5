"""One rank's share of the data holds a NaN in one batch; the sum over the ranks brings it to the other."""

# expect: AMP608 error symptoms=AMP802
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
generator = torch.Generator().manual_seed(rank)
for step in range(16):
    inputs = torch.randn(16, 8, generator=generator)
    targets = torch.randint(3, (16,), generator=generator)
    if rank == 1 and step == 9:
        inputs[3, 5] = float("nan")
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
dist.destroy_process_group()
