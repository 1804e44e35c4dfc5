"""Two ranks sum scaled gradients; each made its scaler from its own configuration."""

# expect: AMP801 error first=0
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
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0 if rank == 0 else 256.0)
generator = torch.Generator().manual_seed(rank)
for _ in range(12):
    inputs = torch.randn(16, 8, generator=generator)
    targets = torch.randint(3, (16,), generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
dist.destroy_process_group()
