"""Home-made mixed precision: fp16 weights with scaled gradients, fp32 master copies that are not the model's
parameters, no GradScaler and no autocast. It prints of its own skip."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).half()
masters = [p.detach().clone().float() for p in model.parameters()]
optimizer = torch.optim.Adam(masters, lr=1e-3)
log_scale = 18.0
inputs, targets = torch.randn(256, 16).half(), torch.randint(4, (256,))

for _step in range(40):
    rows = torch.randint(256, (64,))
    for parameter in model.parameters():
        parameter.grad = None
    loss = nn.functional.cross_entropy(model(inputs[rows]).float(), targets[rows])
    (loss * 2**log_scale).backward()
    for master, parameter in zip(masters, model.parameters(), strict=True):
        master.grad = parameter.grad.float().mul_(2**-log_scale)
    if not all(torch.isfinite(master.grad).all() for master in masters):
        log_scale -= 1
        print(f"Found NaN, decreased the scale to 2^{log_scale}")
        continue
    log_scale += 0.001
    optimizer.step()
    with torch.no_grad():
        for master, parameter in zip(masters, model.parameters(), strict=True):
            parameter.copy_(master)
    print(loss.item().hex())
