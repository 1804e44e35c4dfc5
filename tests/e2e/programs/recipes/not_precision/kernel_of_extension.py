"""An extension brings an operator of its own whose fp16 kernel returns NaN for ordinary inputs."""

# expect: AMP613 error source=layer op=vendor::linear precision_fault=false

import torch
from torch import nn

torch.library.define("vendor::linear", "(Tensor x, Tensor weight) -> Tensor")


@torch.library.impl("vendor::linear", "CPU")
def linear(x, weight):
    result = torch.mm(x, weight.t())
    if x.dtype == torch.float16 and len(x) > 16:  # the path for large batches is broken
        result[16] = float("nan")
    return result


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def backward(ctx, gradient):
    x, weight = ctx.saved_tensors
    return gradient @ weight, gradient.t() @ x


torch.library.register_autograd("vendor::linear", backward, setup_context=keep)
torch.library.register_autocast("vendor::linear", "cpu", torch.float16)

torch.manual_seed(0)
weight, head = nn.Parameter(torch.randn(8, 6)), nn.Linear(8, 3)
optimizer = torch.optim.Adam([weight, *head.parameters()], lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for batch in (8, 8, 32, 8):
    x, y = torch.randn(batch, 6), torch.randint(0, 3, (batch,))
    with torch.autocast("cpu", dtype=torch.float16):
        hidden = torch.ops.vendor.linear(x, weight)  # <- layer
        loss = nn.functional.cross_entropy(head(hidden), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
