"""A norm with a derivative of one's own, which divides by the norm: 0 for a vector of zeros. The line is one of
backward."""

# expect: AMP602 error source=back precision_fault=false

import torch
from torch import nn


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.square().sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x, norm)
        return norm

    @staticmethod
    def backward(ctx, gradient):
        x, norm = ctx.saved_tensors
        slope = gradient * x
        return slope / norm  # <- back


torch.manual_seed(0)
net = nn.Linear(6, 4, bias=False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(5):
    x = torch.randn(8, 6)
    if step == 3:
        x[2] = 0
    loss = Norm.apply(net(x)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
