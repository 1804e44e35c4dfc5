"""A scaler restored from a run that had collapsed keeps a tiny loss scale, and gradients are flushed to zero."""

# expect: AMP501

import torch
from training import Training


def change_training(t: Training) -> None:
    t.scaler = torch.amp.GradScaler("cpu")
    t.scaler.load_state_dict(
        {
            "scale": 2.0**-14,
            "growth_factor": 2.0,
            "backoff_factor": 0.5,
            "growth_interval": 2000,
            "_growth_tracker": 0,
        }
    )
