"""The loss is computed outside the autocast block, so it is reduced in fp16."""

# expect: AMP102 warning source=loss

import torch
from torch import nn
from torch.nn import functional as F
from training import Batch, Training


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            logits = t.model(batch.inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), batch.targets.flatten()) / len(batches)  # <- loss
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
