"""The loss is scaled, but the optimizer steps directly and applies the scaled gradients."""

# expect: AMP208 error source=step

import torch
from training import Batch, Training, cross_entropy


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            loss = cross_entropy(t.model(batch.inputs), batch.targets) / len(batches)
        t.scaler.scale(loss).backward()
        total += loss.item()
    t.optimizer.step()  # <- step
    t.scheduler.step()
    return total
