"""Working weights in bf16 stand still between many steps, and that is right: the program keeps fp32 masters and copies
them after every step."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(15)
net = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 3)).to(torch.bfloat16)
work = list(net.parameters())
master = [p.detach().clone().float().requires_grad_(True) for p in work]
opt = torch.optim.AdamW(master, lr=2e-5, weight_decay=0.0)
for _ in range(50):
    x = torch.randn(16, 10)
    loss = nn.functional.cross_entropy(net(x.bfloat16()).float(), x[:, :3].argmax(1))
    for p in work:
        p.grad = None
    loss.backward()
    for m, p in zip(master, work, strict=True):
        m.grad = p.grad.float()
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, work, strict=True):
            p.copy_(m)
print(float(loss).hex())
