"""Data parallel by hand: the caller is under autocast, the threads of its replicas are not."""

# expect: AMP109 warning source=forward

import threading

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.relu(self.embed(x)))  # <- forward


def replicate(model, parts):
    outputs = [None] * len(parts)

    def run(number):
        outputs[number] = model(parts[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(parts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return torch.cat(outputs)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(replicate(model, inputs.chunk(2)), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
