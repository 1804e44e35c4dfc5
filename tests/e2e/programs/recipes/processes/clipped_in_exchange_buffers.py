"""Gradients that are views of the buffers of their exchange (gradient_as_bucket_view) are clipped while scaled."""

# expect: AMP202 error source=clip
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
generator = torch.Generator().manual_seed(dist.get_rank())
for _ in range(14):
    inputs = torch.randn(16, 8, generator=generator)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :3].argmax(1))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- clip
    scaler.step(optimizer)
    scaler.update()
dist.destroy_process_group()
