"""Messages of a graph are added up in fp16, and one node has a thousand and more neighbours."""

# expect: AMP402 error source=sum precision_fault=true

import torch
from torch import nn

torch.manual_seed(17)


def scatter_sum(src, index, n):
    out = src.new_zeros(n, src.size(1))
    out.index_add_(0, index, src)  # <- sum
    return out


class GIN(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))
        self.msg = nn.Linear(i, i)

    def forward(self, x, ei):
        m = torch.relu(self.msg(x))
        agg = scatter_sum(m[ei[0]], ei[1], x.size(0))
        return self.mlp(agg)


net, head = GIN(6, 16), nn.Linear(16, 2)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
for step in range(20):
    n = 400
    x = torch.rand(n, 6) * 200
    src = torch.randint(0, n, (2000,))
    dst = torch.randint(0, n, (2000,))
    if step % 5 == 4:  # a graph with a hub
        dst[:1900] = 7
    with torch.autocast("cpu", dtype=torch.float16):
        logits = head(net(x, torch.stack([src, dst])))
        loss = nn.functional.cross_entropy(logits, (x[:, 0] > 100).long())
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
print(float(loss).hex())
