"""A mixture of experts: some experts get no token in a step, rows of the embedding are not in the batch, one is
never used."""

# expect: quiet

import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )
        self.spare = nn.Linear(width, width)

    def forward(self, x):
        weights, choice = self.router(x).float().softmax(-1).max(-1)
        result = torch.zeros_like(x, dtype=torch.float32)
        for number, expert in enumerate(self.experts):
            rows = choice == number
            if rows.any():
                result[rows] = expert(x[rows]).float() * weights[rows, None]
        return x + result


torch.manual_seed(0)
embed, mixture, head = nn.Embedding(100, 16), Mixture(16, 6), nn.Linear(16, 100)
parameters = [*embed.parameters(), *mixture.parameters(), *head.parameters()]
optimizer = torch.optim.Adam(parameters, lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2048.0)
text = torch.randint(100, (400,))
for _step in range(30):
    start = torch.randint(380, ()).item()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = head(mixture(embed(text[start : start + 12])))
        loss = nn.functional.cross_entropy(logits, text[start + 1 : start + 13])
    optimizer.zero_grad(set_to_none=False)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(parameters, 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(loss.item().hex())
print("0 of 30 steps skipped")
