"""bf16 autocast in forward; a custom Function computes its gradient in fp16 to save memory."""

# expect: AMP105 error source=backward phase=backward

import torch
from torch import nn


class Compressed(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        gradient = gradient.half()
        return (gradient @ weight.half()).float(), (gradient.t() @ x.half()).float()  # <- backward


torch.manual_seed(0)
weight = nn.Parameter(torch.randn(16, 8) / 3)
head = nn.Linear(16, 3)
optimizer = torch.optim.SGD([weight, *head.parameters()], lr=0.1)
inputs, targets = torch.randn(32, 8, requires_grad=True), torch.randint(3, (32,))
for _ in range(10):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(head(torch.relu(Compressed.apply(inputs, weight))), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
