"""A learning rate so high that the weights explode within a handful of steps, of which none lies between an ordinary
loss and the first overflow of fp16. fp32 diverges as well."""

# expect: AMP609 error

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.query_key_value = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.merge, self.out = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width))

    def forward(self, inputs):
        query, key, value = self.query_key_value(self.norm(inputs)).chunk(3, -1)
        weights = (query @ key.transpose(-1, -2) * query.size(-1) ** -0.5).softmax(-1)
        inputs = inputs + weights @ value
        return inputs + self.out(self.merge(inputs))


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 32), Block(32), Block(32), Block(32), nn.Linear(32, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=3.0, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
for _ in range(20):
    tokens = torch.randint(0, 20, (8, 13))
    with torch.autocast("cpu", dtype=torch.float16):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.item(), scaler.get_scale())
