"""The shard of one rank holds an infinite value. Watched so that operators are not looked at: gradients alone tell on
which rank it starts."""

# expect: AMP802 error first=7
# levels: grads
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
shard, targets = torch.randn(2, 48, 8)[rank], torch.randint(3, (48,))
if rank == 1:
    shard[30, 2] = float("inf")
for step in range(12):
    inputs, labels = shard[4 * step :][:4], targets[4 * step :][:4]
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
dist.destroy_process_group()
