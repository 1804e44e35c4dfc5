"""A tutorial passes one scaler to all processes that it spawns. Each gets a copy; as gradients are averaged before they
are unscaled, the copies stay equal, and nothing is wrong."""

# expect: quiet
# traces: 2

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank, port, scaler):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(12):
        inputs = torch.randn(16, 8, generator=generator)
        targets = torch.randint(3, (16,), generator=generator)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs).float(), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
    mp.spawn(train, (port, scaler), nprocs=2)
