"""The learning-rate schedule advances on skipped steps too."""

# expect: AMP212 warning source=schedule

import torch
from torch import nn
from training import Batch, Training, cross_entropy


def change_training(t: Training) -> None:
    # A scale that has to settle first, as after a change of the model.
    t.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            loss = cross_entropy(t.model(batch.inputs), batch.targets) / len(batches)
        t.scaler.scale(loss).backward()
        total += loss.item()
    t.scaler.unscale_(t.optimizer)
    nn.utils.clip_grad_norm_(t.model.parameters(), t.max_norm)
    t.scaler.step(t.optimizer)
    t.scaler.update()
    t.scheduler.step()  # <- schedule
    return total
