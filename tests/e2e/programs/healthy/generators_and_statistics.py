"""Ops that draw random numbers or write to buffers of theirs: done a second time, they would change the run."""

# expect: quiet
# levels: auto full shadow

import torch
from torch import nn

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(24)
        self.recurrent = nn.LSTM(24, 24, num_layers=2, dropout=0.3, batch_first=True)
        self.drop = nn.AlphaDropout(0.2)
        self.leak = nn.RReLU()
        self.head = nn.Linear(24, 4)

    def forward(self, x):
        x = self.norm(x.transpose(1, 2)).transpose(1, 2)
        x = nn.functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], dropout_p=0.1)[:, 0]
        x, _ = self.recurrent(x)
        x = self.leak(self.drop(x)) + 0.01 * torch.poisson(x.detach().float().abs())
        return self.head(nn.functional.gumbel_softmax(x, dim=-1).mean(1))


model = Block()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
inputs, targets = torch.randn(32, 6, 24), torch.randint(4, (32,))
for step in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex(), model.norm.running_mean.sum().item().hex(), torch.rand(1).item().hex())
