"""Two processes train one model over gloo: gradients are averaged, scales stay equal, only rank 0 evaluates."""

# expect: quiet
# launch: torch.distributed.run --standalone --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 4)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**18)
torch.manual_seed(1 + rank)
inputs, targets = torch.randn(128, 10), torch.randint(4, (128,))
for step in range(20):
    rows = torch.randint(128, (32,))
    for micro_batch, part in enumerate(rows.chunk(2)):
        model.require_backward_grad_sync = micro_batch == 1
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs[part]), targets[part]) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    if rank == 0:
        print(loss.item().hex(), scaler.get_scale(), flush=True)
        if step % 5 == 0:
            with torch.no_grad():
                model.module(inputs).argmax(1)
dist.destroy_process_group()
