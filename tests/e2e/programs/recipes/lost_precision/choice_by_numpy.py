"""Search probabilities of a half model are given to numpy, which wants them to add up to one to 1e-8."""

# expect: AMP511 warning source=head
# exit: 1

import numpy as np
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(9, 32), nn.Linear(32, 64)

    def forward(self, board):
        scores = self.head(torch.relu(self.body(board)))
        return (scores - scores.amax(-1, keepdim=True)).softmax(-1)  # <- head


torch.manual_seed(0)
np.random.seed(0)
network = Network()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(12):
    board = torch.randn(4, 9)
    with torch.autocast("cpu", dtype=torch.float16):
        policy = network(board)
    loss = -policy.float()[:, 0].log().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step == 8:
        weights = policy[0].detach().numpy().astype(np.float64)
        print(np.random.choice(64, p=weights))
