"""A term of the loss divides 0 by 0 when a batch holds no sample of one class."""

# expect: AMP606 error source=divide

import torch
from torch import nn
from torch.nn import functional as F
from training import Batch, Training, cross_entropy


def rare_class(t: Training) -> int:
    """The digit 8; the letter p."""
    return 8 if t.program.name == "digits" else t.program.data.characters.index(ord("p"))


def rare_class_loss(logits: torch.Tensor, targets: torch.Tensor, rare: int) -> torch.Tensor:
    each = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), reduction="none")
    is_rare = (targets.flatten() == rare).float()
    return (each * is_rare).sum() / is_rare.sum()  # <- divide


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            logits = t.model(batch.inputs)
            loss = cross_entropy(logits, batch.targets)
            loss = loss + 0.1 * rare_class_loss(logits, batch.targets, rare_class(t))
            loss = loss / len(batches)
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
