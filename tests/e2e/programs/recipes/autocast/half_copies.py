"""A half copy for inference, a half checkpoint that is only written, a round trip of outputs for a log."""

# expect: quiet

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters())
inputs, targets = torch.randn(32, 8), torch.randint(3, (32,))
for step in range(15):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(inputs)
        loss = nn.functional.cross_entropy(logits, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    if step % 5 == 4:
        checkpoint = {name: value.half() for name, value in model.state_dict().items()}
        restored = {name: value.float() for name, value in checkpoint.items()}
        fast = copy.deepcopy(average).half()
        with torch.no_grad():
            print(step, fast(inputs.half()).float().mean().item(), restored["0.bias"].sum().item())
