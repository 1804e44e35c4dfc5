"""Gradients are clipped by value while they are scaled: nearly every one becomes ±1."""

# expect: AMP202 error source=clip

import torch
from torch import nn

torch.manual_seed(0)
rnn = nn.GRUCell(12, 24)
readout = nn.Linear(24, 6)
parameters = [*rnn.parameters(), *readout.parameters()]
optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
sequences, labels = torch.randn(256, 8, 12), torch.randint(6, (256,))

for step in range(25):
    rows = torch.randint(256, (32,))
    with torch.autocast("cpu", dtype=torch.float16):
        state = torch.zeros(32, 24)
        for time in range(8):
            state = rnn(sequences[rows, time], state)
        loss = nn.functional.cross_entropy(readout(state), labels[rows])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    nn.utils.clip_grad_value_(parameters, 1.0)  # <- clip
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
