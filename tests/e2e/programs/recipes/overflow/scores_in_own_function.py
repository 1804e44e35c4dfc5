"""Unscaled attention scores are computed by an autograd.Function of a library; large activations pass 65504."""

# expect: AMP401 error source=scores

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Scores(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, q, k):
        ctx.save_for_backward(q, k)
        return torch.einsum("bqd,bkd->bqk", q, k)  # <- scores

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        q, k = ctx.saved_tensors
        return torch.einsum("bqk,bkd->bqd", grad, k), torch.einsum("bqk,bqd->bkd", grad, q)


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))

    def forward(self, x):
        return Scores.apply(self.q(x), self.k(x)).softmax(-1) @ self.v(x)


model, head = Attention(64), nn.Linear(64, 3)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
for step in range(16):
    x = torch.randn(4, 10, 64) * (100 if step == 9 else 1)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(head(model(x)).mean(1), torch.arange(4) % 3)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
