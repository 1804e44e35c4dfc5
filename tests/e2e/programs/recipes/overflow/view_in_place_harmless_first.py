"""A product through a view overflows in many steps without harm, until a label asks for one of its results."""

# expect: AMP403 error source=boost first=24

import torch
from torch import nn

torch.manual_seed(42)


def boost(scores, n_special, w):
    """raise the scores of the special tokens"""
    scores[..., :n_special].mul_(w)  # <- boost
    return scores


emb, mix, head = nn.Embedding(40, 32), nn.Linear(32, 32), nn.Linear(32, 40)
opt = torch.optim.Adam([*emb.parameters(), *mix.parameters(), *head.parameters()], lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for step in range(30):
    ids = torch.randint(0, 40, (12, 6))
    with torch.autocast("cpu", dtype=torch.float16):
        h = torch.relu(mix(emb(ids).mean(1)))
        lg = boost(head(h).clone() * 300.0, 4, 900.0 if step >= 8 else 20.0)
        loss = nn.functional.cross_entropy(lg / 300.0, ids[:, 0])
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
print(float(loss).hex())
