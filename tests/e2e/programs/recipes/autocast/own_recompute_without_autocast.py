"""A home-made checkpoint runs its block again in backward, where autocast is off: the first one ends the program."""

# expect: AMP108 error source=apply module=inner
# exit: 1

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(32, 64)
        self.outer = nn.Linear(64, 32)

    def forward(self, inputs):
        return self.outer(torch.relu(self.inner(inputs)))


class Recompute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, inputs, *weights):
        ctx.block = block
        ctx.save_for_backward(inputs)
        with torch.no_grad():
            return block(inputs)

    @staticmethod
    def backward(ctx, gradient):
        (inputs,) = ctx.saved_tensors
        inputs = inputs.detach().requires_grad_()
        with torch.enable_grad():
            outputs = ctx.block(inputs)
        return None, *torch.autograd.grad(outputs, (inputs, *ctx.block.parameters()), gradient)


torch.manual_seed(0)
first, block, last = nn.Linear(8, 32), Block(), nn.Linear(32, 1)
optimizer = torch.optim.AdamW([*first.parameters(), *block.parameters(), *last.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu")
for _ in range(20):
    inputs = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = Recompute.apply(block, first(inputs), *block.parameters())  # <- apply
        loss = nn.functional.mse_loss(last(hidden).float(), inputs.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
