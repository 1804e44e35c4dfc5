"""A box loss whose small constant is added first, 1 + 1e-9 - iou: lost in fp32 as well, where boxes are equal."""

# expect: AMP503 error source=ratio precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)


def box_loss(box: torch.Tensor, target: torch.Tensor, eps: float = 1e-9) -> torch.Tensor:
    low, high = torch.maximum(box[:, :2], target[:, :2]), torch.minimum(box[:, 2:], target[:, 2:])
    inner = (high - low).clamp(min=0).prod(1)
    area = lambda b: (b[:, 2:] - b[:, :2]).prod(1)  # noqa: E731
    iou = inner / (area(box) + area(target) - inner)
    ratio = lambda b: torch.atan((b[:, 2] - b[:, 0]) / (b[:, 3] - b[:, 1]))  # noqa: E731
    v = (ratio(target) - ratio(box)).square()
    alpha = v / ((1 + eps) - iou + v)  # <- ratio
    return (1 - iou + alpha * v).mean()


model = nn.Linear(5, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(12):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        size = model(torch.randn(9, 5)).float().sigmoid()
    box = torch.cat([torch.zeros(9, 2), 0.5 + size[:, 2:]], 1)
    target = torch.cat([torch.zeros(9, 2), torch.full((9, 2), 0.8)], 1)
    if step == 8:
        target[4] = box[4].detach()
    loss = box_loss(box, target)
    loss.backward()
    optimizer.step()
