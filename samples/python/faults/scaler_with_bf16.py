"""A GradScaler is left on in a bf16 run, where it does work for nothing."""

# expect: AMP217 warning

import torch
from training import Training

PRECISION = "bf16"


def change_training(t: Training) -> None:
    t.scaler = torch.amp.GradScaler("cpu")
