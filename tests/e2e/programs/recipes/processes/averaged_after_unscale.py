"""Four ranks unscale their own gradients before they average them, so each decides for itself what to skip."""

# expect: AMP801 error
# launch: torch.distributed.run --nproc-per-node 4
# traces: 4

import torch
import torch.distributed as dist
from torch import nn


class Averaged:
    """A wrapper that averages gradients by hand, as DistributedDataParallel would do in backward."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=100)

    def step(self, loss):
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        for parameter in self.model.parameters():
            finite = torch.nan_to_num(parameter.grad, nan=0.0, posinf=0.0, neginf=0.0)
            dist.all_reduce(finite)
            parameter.grad.copy_(finite / dist.get_world_size())
        self.scaler.step(self.optimizer)
        self.scaler.update()


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
trainer = Averaged(model, torch.optim.SGD(model.parameters(), lr=0.01))
generator = torch.Generator().manual_seed(rank)
for step in range(14):
    inputs = torch.randn(16, 8, generator=generator)
    targets = torch.randint(3, (16,), generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    if rank == 3 and step in (5, 8):
        loss = loss * 2000
    trainer.step(loss)
dist.destroy_process_group()
