"""A feature in fp32 is larger than any fp16 number, and autocast casts it for a linear layer."""

# expect: AMP404 error

import torch
from torch import Tensor, nn
from training import Batch, Program, Training, cross_entropy

STEPS = 60


class WithPlace(nn.Module):
    """Tells the model where in the book a window starts, in characters: up to 133,000."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.place = nn.Linear(1, model.head.in_features)

    def forward(self, tokens: Tensor, places: Tensor | None = None) -> Tensor:
        features = self.model.features(tokens)
        if places is not None:
            features = features + 1e-6 * self.place(places.float().unsqueeze(1)).unsqueeze(1)
        return self.model.head(features)


def change_program(program: Program) -> None:
    if program.name == "digits":
        # Grey values as an image of 16 bits holds them: white is 65535.
        program.data.images = 65535 * program.data.images
    else:
        program.model = WithPlace(program.model)


def train_step(t: Training, batches: list[Batch]) -> float:
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        extra = [] if t.program.name == "digits" else [batch.index]
        with torch.autocast("cpu", dtype=t.dtype):
            loss = cross_entropy(t.model(batch.inputs, *extra), batch.targets) / len(batches)
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
