"""Casts to half that lose nothing of what is trained: fp32 masters of half weights, weights swapped for an average and
back, gradients compressed for a sum, data that are rounded and then changed in place, best weights kept in half and put
back when training is over."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
worker = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(torch.bfloat16)
masters = list(model.parameters())
average = [p.detach().clone() for p in masters]
optimizer = torch.optim.AdamW(masters, lr=1e-3)
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(20):
    with torch.no_grad():
        for half, master in zip(worker.parameters(), masters, strict=True):
            half.copy_(master)
    rounded = inputs.bfloat16()
    noisy = rounded.float()
    noisy.add_(torch.randn_like(noisy), alpha=0.01)
    loss = nn.functional.cross_entropy(worker(noisy.bfloat16()).float(), targets)
    worker.zero_grad()
    loss.backward()
    with torch.no_grad():
        for half, master in zip(worker.parameters(), masters, strict=True):
            summed = half.grad.float().bfloat16()
            master.grad = summed.float()
    optimizer.step()
    with torch.no_grad():
        for mean, master in zip(average, masters, strict=True):
            mean.lerp_(master, 0.1)
        if step % 5 == 4:
            kept = [master.detach().clone() for master in masters]
            for master, mean in zip(masters, average, strict=True):
                master.copy_(mean)
            print(step, model(inputs).argmax(1).eq(targets).float().mean().item())
            for master, before in zip(masters, kept, strict=True):
                master.copy_(before)
            best = {name: value.half() for name, value in model.state_dict().items()}
model.load_state_dict(best)
