"""No mistake: the model is compiled, which hides its operators from the observer."""

# expect: AMP901 info

import torch
from training import Training

STEPS = 30


def change_training(t: Training) -> None:
    t.model = torch.compile(t.model)
