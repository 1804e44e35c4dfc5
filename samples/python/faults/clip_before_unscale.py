"""Gradients are clipped while they are still multiplied by the loss scale."""

# expect: AMP202 error source=clip

import torch
from torch import nn
from training import Batch, Training, cross_entropy


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            loss = cross_entropy(t.model(batch.inputs), batch.targets) / len(batches)
        t.scaler.scale(loss).backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(t.model.parameters(), t.max_norm)  # <- clip
    t.scaler.step(t.optimizer)
    scale = t.scaler.get_scale()
    t.scaler.update()
    if t.scaler.get_scale() >= scale:
        t.scheduler.step()
    return total
