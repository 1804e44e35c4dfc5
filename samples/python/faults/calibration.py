"""No mistake: a large initial scale is halved in the first steps until it fits, as it is meant to be."""

# expect: AMP301 info

import torch
from training import Training


def change_training(t: Training) -> None:
    t.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
