"""Replicas whose module enters autocast; a thread that validates without gradients; fp32 threads outside the block."""

# expect: quiet

import threading

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.head(torch.relu(self.embed(x)))


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def validate(model, x):
    with torch.no_grad():
        return nn.functional.linear(x, model.embed.weight).mean()


torch.manual_seed(0)
model, critic = Model(), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*model.parameters(), *critic.parameters()], lr=0.1)
inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = in_thread(lambda: model(inputs))
        in_thread(lambda: validate(model, inputs))
        loss = nn.functional.cross_entropy(logits, targets)
    loss = loss + in_thread(lambda logits=logits: critic(logits.float()).square().mean())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
