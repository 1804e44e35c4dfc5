"""Forward and backward in worker threads, one model each; loading in another thread."""

# expect: quiet

import queue
import threading

import torch
from torch import nn

torch.manual_seed(0)
batches = queue.Queue()
gradients = {}


def load():
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        batches.put((torch.randn(32, 8, generator=generator), torch.randint(4, (32,), generator=generator)))


def work(number, model, inputs, targets):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    gradients[number] = (loss.item(), torch.autograd.grad(loss, list(model.parameters())))


model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = threading.Thread(target=load)
loader.start()
for _ in range(20):
    inputs, targets = batches.get()
    halves = zip(inputs.chunk(2), targets.chunk(2), strict=True)
    workers = [threading.Thread(target=work, args=(number, model, *half)) for number, half in enumerate(halves)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for position, parameter in enumerate(model.parameters()):
        parameter.grad = sum(gradients[number][1][position] for number in range(2)) / 2
    optimizer.step()
    print(*(gradients[number][0].hex() for number in range(2)))
loader.join()
