"""Local SGD: every rank has data and a scaler of its own, and only the weights are averaged, each eighth step."""

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
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**19, growth_interval=20)
generator = torch.Generator().manual_seed(rank)
for step in range(48):
    inputs = torch.randn(16, 8, generator=generator) * (1 + 4 * rank)
    targets = torch.randint(3, (16,), generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 8 == 7:
        weights = nn.utils.parameters_to_vector(model.parameters()).detach()
        dist.all_reduce(weights)
        nn.utils.vector_to_parameters(weights / dist.get_world_size(), model.parameters())
dist.destroy_process_group()
