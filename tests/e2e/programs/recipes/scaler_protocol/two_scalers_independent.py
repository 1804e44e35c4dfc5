"""Two models, each with an optimizer and a scaler of its own: both passes first, then each step with its own update.
Then gradients that are divided by hand, each by the scale of its own scaler, before they are clipped."""

# expect: quiet

import torch
from torch import nn


def build(scale):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return model, optimizer, torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=4)


def loss_of(model, inputs):
    with torch.autocast("cpu", dtype=torch.float16):
        return nn.functional.cross_entropy(model(inputs).float(), inputs[:, :3].argmax(1))


torch.manual_seed(0)
pairs = [build(512.0), build(8192.0)]
for step in range(40):
    inputs = torch.randn(32, 8)
    losses = [loss_of(model, inputs) for model, _, _ in pairs]
    for loss, (_, optimizer, scaler) in zip(losses, pairs, strict=True):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
    for model, optimizer, scaler in pairs:
        if step < 20:
            scaler.step(optimizer)
            scaler.update()
        else:
            for parameter in model.parameters():
                parameter.grad.div_(scaler.get_scale())
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.2)
            if norm.isfinite():
                optimizer.step()
    print(*(loss.item().hex() for loss in losses))
