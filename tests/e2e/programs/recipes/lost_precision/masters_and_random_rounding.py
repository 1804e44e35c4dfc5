"""bf16 weights that stay in most steps and move all the same: copies of fp32 masters, kept outside the optimizer and
inside it, and updates that are rounded at random."""

# expect: quiet

import torch
from torch import nn


def rounded_at_random(value):
    bits = value.view(torch.int32)
    bits = (bits + torch.randint_like(bits, 1 << 16)) & -65536
    return bits.view(torch.float32).to(torch.bfloat16)


class WithMasters(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                master = self.state[p].setdefault("master", p.detach().float().clone())
                master.add_(p.grad.float().sign(), alpha=-group["lr"])
                p.copy_(master)


class AtRandom(WithMasters):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(rounded_at_random(p.float() - group["lr"] * p.grad.float().sign()))


def net():
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4)).to(torch.bfloat16)


torch.manual_seed(0)
first, second, third = net(), net(), net()
masters = [p.detach().float().clone().requires_grad_() for p in first.parameters()]
outside = torch.optim.AdamW(masters, lr=5e-5)
inside, at_random = WithMasters(second.parameters(), lr=5e-5), AtRandom(third.parameters(), lr=5e-5)
for _ in range(50):
    x, y = torch.randn(32, 16, dtype=torch.bfloat16), torch.randint(4, (32,))
    for model in (first, second, third):
        model.zero_grad()
        nn.functional.cross_entropy(model(x).float(), y).backward()
    for master, weight in zip(masters, first.parameters(), strict=True):
        master.grad = weight.grad.float()
    outside.step()
    with torch.no_grad():
        for master, weight in zip(masters, first.parameters(), strict=True):
            weight.copy_(master)
    inside.step()
    at_random.step()
