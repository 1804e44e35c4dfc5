"""Two threads train a model each with one scaler."""

# expect: AMP803 error

import threading

import torch
from torch import nn

scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
turn = threading.Lock()


def train(seed):
    generator = torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(10):
        inputs = torch.randn(16, 8, generator=generator)
        targets = torch.randint(3, (16,), generator=generator)
        with turn:
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()


torch.manual_seed(0)
threads = [threading.Thread(target=train, args=(seed,)) for seed in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
