"""The forward variables of a CTC loss begin at -inf, and the derivative of logaddexp of two of them is NaN."""

# expect: AMP602 error source=alpha

import torch
from torch import nn

torch.manual_seed(21)
NEG = float("-inf")


def ctc_alpha(logp, tgt, blank=0):
    """logp (T, C), tgt (L,) -> -log p(tgt)"""
    ext = torch.zeros(2 * len(tgt) + 1, dtype=torch.long)
    ext[1::2] = tgt
    S = ext.numel()
    skip = torch.zeros(S, dtype=torch.bool)
    skip[2:] = (ext[2:] != blank) & (ext[2:] != ext[:-2])
    lp = logp[:, ext]
    a = torch.cat([lp[0, :2], lp.new_full((S - 2,), NEG)])
    for t in range(1, lp.size(0)):
        prev = torch.cat([a.new_full((1,), NEG), a[:-1]])
        prev2 = torch.cat([a.new_full((2,), NEG), a[:-2]])
        prev2 = prev2.masked_fill(~skip, NEG)
        a = torch.logaddexp(torch.logaddexp(a, prev), prev2) + lp[t]  # <- alpha
    return -torch.logaddexp(a[-1], a[-2])


net = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 6))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(15):
    x = torch.randn(2, 7, 5)
    tg = torch.randint(1, 6, (2, 3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lg = net(x)
    lp = lg.float().log_softmax(-1)
    loss = torch.stack([ctc_alpha(lp[i], tg[i]) for i in range(2)]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss).hex())
