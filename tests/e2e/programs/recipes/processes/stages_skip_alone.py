"""Two stages of a pipeline whose scalers know nothing of each other: the last one skips, the first one steps."""

# expect: AMP801 error
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.set_num_threads(1)
torch.manual_seed(rank)
first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 32))
last = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 4))
stage = last if rank else first
optimizer = torch.optim.SGD(stage.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=25)
inputs, targets = torch.randn(64, 12), torch.randint(4, (64,))
for _step in range(40):
    optimizer.zero_grad()
    if rank == 0:
        with torch.autocast("cpu", dtype=torch.float16):
            passed = stage(inputs)
        dist.send(passed.detach().contiguous(), 1)
        gradient = torch.empty_like(passed)
        dist.recv(gradient, 1)
        scaler.scale(torch.zeros(()))
        passed.backward(gradient)
    else:
        passed = torch.empty(64, 32, dtype=torch.float16)
        dist.recv(passed, 0)
        passed.requires_grad_()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(stage(passed), targets)
        scaler.scale(loss).backward()
        dist.send(passed.grad, 0)
    scaler.step(optimizer)
    scaler.update()
dist.destroy_process_group()
