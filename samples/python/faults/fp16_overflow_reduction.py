"""A penalty adds up more than 100,000 fp16 values, and the sum passes the largest fp16 number."""

# expect: AMP402 error op=aten::sum source=sum

import torch
from torch import Tensor, nn
from training import Batch, Program, Training, cross_entropy

STEPS = 12


def change_program(program: Program) -> None:
    # Micro-batches of 131,072 features, or of 147,456 logits.
    program.batch_size = 2048 if program.name == "digits" else 128


def size_penalty(activations: Tensor) -> Tensor:
    """Keeps the mean square near 1."""
    mean = activations.square().sum() / activations.numel()  # <- sum
    return (mean - 1) ** 2


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            features = t.model.features(batch.inputs)
            logits = t.model.head(features)
            loss = cross_entropy(logits, batch.targets)
            if t.step >= STEPS // 2:
                loss = loss + 0.01 * size_penalty(features if t.program.name == "digits" else logits)
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
