"""Two masks are added that fit fp16 one by one, not together, and a sample that both leave out has no softmax."""

# expect: AMP406 error source=masks

import torch
from torch import nn

torch.manual_seed(66)
BIG = -4e4


def extend(mask, dtype):
    return (1.0 - mask.to(dtype)) * BIG


class Dec(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, 20)

    def forward(self, x, keep, seg):
        q, k, v = self.qkv(x).chunk(3, -1)
        s = q @ k.mT / 4
        same = extend((seg[:, :, None] == seg[:, None]) & (seg > 0)[:, None], s.dtype)
        s = s + extend(keep, s.dtype)[:, None] + same  # <- masks
        s = s - s.max(-1, keepdim=True).values
        return self.o(s.softmax(-1) @ v)


emb, dec = nn.Embedding(20, 16), Dec(16)
opt = torch.optim.Adam([*emb.parameters(), *dec.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
for step in range(20):
    ids = torch.randint(0, 20, (4, 8))
    keep = torch.ones(4, 8)
    seg = torch.ones(4, 8, dtype=torch.long)
    seg[:, 5:] = 2
    if step >= 9:
        keep[2], seg[2] = 0, 0  # a sample dropped by the collator
    with torch.autocast("cpu", dtype=torch.float16):
        s = dec(emb(ids), keep, seg)
        loss = nn.functional.cross_entropy(s[:, :-1].reshape(-1, 20), ids[:, 1:].reshape(-1))
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
print(float(loss).hex())
