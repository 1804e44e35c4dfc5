"""Two models, two losses, one scaler: only one optimizer is unscaled before its step, for its norm alone."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
optimizers = [torch.optim.SGD(first.parameters(), lr=1e-2), torch.optim.Adam(second.parameters(), lr=1e-3)]
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
inputs, targets = torch.randn(64, 16), torch.randn(64, 16)
for _step in range(25):
    for optimizer in optimizers:
        optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        output = first(inputs)
        result = second(output)
        losses = [nn.functional.mse_loss(output.float(), targets), nn.functional.mse_loss(result.float(), inputs)]
    scaler.scale(losses[0]).backward(retain_graph=True)
    scaler.scale(losses[1]).backward()
    scaler.unscale_(optimizers[0])
    norm = nn.utils.get_total_norm([p.grad for p in first.parameters()])
    scaler.step(optimizers[0])
    scaler.step(optimizers[1])
    scaler.update()
    print(norm.item().hex(), *(loss.item().hex() for loss in losses))
