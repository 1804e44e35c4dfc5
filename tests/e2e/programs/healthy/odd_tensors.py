"""Tensors of every kind pass through a training step: sparse, complex, meta, quantized, channels last, empty,
strided, of no dimension, of subclass, vmapped and functional."""

# expect: quiet

import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")
torch.manual_seed(0)
embed = nn.Embedding(50, 8, sparse=True)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4)).to(
    memory_format=torch.channels_last
)
spectrum = nn.Parameter(torch.randn(8, dtype=torch.complex64))
dense, sparse = torch.optim.AdamW([*net.parameters(), spectrum], lr=1e-3), torch.optim.SparseAdam(embed.parameters())
images = torch.randn(16, 1, 8, 8).to(memory_format=torch.channels_last)


class Tagged(torch.Tensor):
    pass


for _step in range(10):
    dense.zero_grad()
    sparse.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = net(images)
    loss = nn.functional.cross_entropy(logits.float(), torch.randint(4, (16,)))
    loss = loss + embed(torch.randint(50, (6,))).square().mean()
    loss = loss + (torch.fft.fft(torch.ones(8)) * spectrum).abs().mean()
    loss = loss + torch.sparse.mm(torch.eye(4).to_sparse(), logits.float().t()).mean()
    loss = loss + torch.empty(0, 4).sum() + images[::2, :, ::3, 1:].mean() + torch.tensor(1.0).as_subclass(Tagged).sin()
    loss = loss + torch.func.vmap(lambda row: row.float().softmax(0).max())(logits).mean()
    loss = loss.as_subclass(torch.Tensor)
    loss.backward()
    dense.step()
    sparse.step()
    nn.Linear(4, 4, device="meta")(torch.empty(2, 4, device="meta"))
    torch.quantize_per_tensor(torch.randn(4), 0.1, 0, torch.qint8).dequantize()
    torch.func.grad(lambda x: (x**2).sum())(torch.randn(3))
    torch.randn(3, dtype=torch.float64).to(torch.float8_e4m3fn).float()
    print(loss.item().hex())
print("0 of 10 steps skipped")
