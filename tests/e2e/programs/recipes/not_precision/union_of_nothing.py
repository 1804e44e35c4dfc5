"""Intersection over union of two empty boxes is 0/0, in fp32 under bf16 autocast."""

# expect: AMP606 error source=iou precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
head = nn.Linear(8, 4)
optimizer = torch.optim.SGD(head.parameters(), lr=1e-2)


def iou(a, b):
    inter = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(1)
    area = (a[:, 2:] - a[:, :2]).clamp(min=0).prod(1) + (b[:, 2:] - b[:, :2]).clamp(min=0).prod(1)
    return inter / (area - inter)  # <- iou


for step in range(8):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        boxes = head(torch.randn(12, 8))
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].exp()], 1).float()
    target = torch.tensor([[0.0, 0.0, 1.0, 1.0]]).repeat(12, 1)
    if step == 5:
        target[4] = 0
        boxes = torch.where(torch.arange(12)[:, None] == 4, torch.zeros(()), boxes)
    loss = 1 - iou(boxes, target).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
