"""A custom Function saves fp32 weights and is given an fp16 gradient; a guard in the loop hides the error."""

# expect: AMP104 source=backward

import torch
from torch import nn


class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient  # <- backward


torch.manual_seed(0)
weight = nn.Parameter(torch.randn(8, 8) / 3)
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD([weight, *head.parameters()], lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
inputs, targets = torch.randn(16, 8, requires_grad=True), torch.randint(3, (16,))
failed = 0
for step in range(10):
    use_custom = step % 2 == 0
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = Project.apply(inputs, weight) if use_custom else inputs @ weight
        loss = nn.functional.cross_entropy(head(hidden), targets)
    try:
        scaler.scale(loss).backward()
    except RuntimeError:
        failed += 1
        continue
    scaler.step(optimizer)
    scaler.update()
print(failed, "backward passes failed")
