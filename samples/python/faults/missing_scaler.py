"""Trains under fp16 autocast with no GradScaler; the loss is small and its gradients are flushed to zero."""

# expect: AMP201 error

import torch
from torch import nn
from training import Batch, Training, cross_entropy

LOSS_WEIGHT = 1e-4  # of this task among several


def change_training(t: Training) -> None:
    t.scaler = torch.amp.GradScaler("cpu", enabled=False)  # not used below


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with torch.autocast("cpu", dtype=t.dtype):
            loss = LOSS_WEIGHT * cross_entropy(t.model(batch.inputs), batch.targets) / len(batches)
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(t.model.parameters(), t.max_norm)
    t.optimizer.step()
    t.scheduler.step()
    return total
