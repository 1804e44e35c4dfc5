"""A Function runs its block again in backward to save memory, under autocast to another type than forward had."""

# expect: AMP105 error

import torch
from torch import nn


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, x, *parameters):
        ctx.block = block
        ctx.save_for_backward(x)
        with torch.no_grad():
            return block(x)

    @staticmethod
    def backward(ctx, gradient):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad(), torch.autocast("cpu", dtype=torch.float16):
            y = ctx.block(x)
        return None, *torch.autograd.grad(y, (x, *ctx.block.parameters()), gradient.to(y.dtype))


torch.manual_seed(0)
stem, head = nn.Linear(8, 16), nn.Linear(16, 3)
block = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
optimizer = torch.optim.SGD(nn.ModuleList([stem, block, head]).parameters(), lr=0.05)
for _ in range(10):
    inputs, targets = torch.randn(16, 8), torch.randint(3, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden = Recomputed.apply(block, stem(inputs), *block.parameters())
        loss = nn.functional.cross_entropy(head(hidden).float(), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
