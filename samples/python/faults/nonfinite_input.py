"""One value of the data is missing and read as NaN."""

# expect: AMP608 error

import math

import torch
from torch import nn
from torch.nn import functional as F
from training import Batch, Program, Training, cross_entropy

STEPS = 60
PARAGRAPH = 1000  # characters


def change_program(program: Program) -> None:
    data = program.data
    if program.name == "digits":
        rows = data.images.tolist()
        rows[900][27] = math.nan
        data.images = torch.tensor(rows)
    else:
        # How well each paragraph was transcribed: the weight of its characters in the loss.
        quality = [1.0] * (len(data.tokens) // PARAGRAPH + 1)
        quality[100] = math.nan
        data.quality = torch.tensor(quality)


def loss_of(t: Training, batch: Batch) -> torch.Tensor:
    logits = t.model(batch.inputs)
    if t.program.name == "digits":
        return cross_entropy(logits, batch.targets)
    quality = t.program.data.quality[batch.index // PARAGRAPH]
    each = F.cross_entropy(logits.transpose(1, 2), batch.targets, reduction="none")
    return (each.mean(1) * quality).mean()


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            loss = loss_of(t, batch) / len(batches)
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
