"""The weight of a penalty doubles every few steps, and the loss scale falls to follow it."""

# expect: AMP302

import torch
from torch import nn
from training import Batch, Training, cross_entropy

STEPS = 80


def penalty_weight(step: int) -> float:
    """As a penalty method raises it: nobody put a limit to it."""
    return 2.0 ** ((step - 30) / 3)


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            logits = t.model(batch.inputs).float()
            # Keeps the normaliser of the softmax near 1.
            penalty = logits.logsumexp(-1).square().mean()
            loss = (cross_entropy(logits, batch.targets) + penalty_weight(t.step) * penalty) / len(batches)
        t.scaler.scale(loss).backward()
        total += loss.item()
    t.scaler.unscale_(t.optimizer)
    nn.utils.clip_grad_norm_(t.model.parameters(), t.max_norm)
    t.scaler.step(t.optimizer)
    scale = t.scaler.get_scale()
    t.scaler.update()
    if t.scaler.get_scale() >= scale:
        t.scheduler.step()
    return total
