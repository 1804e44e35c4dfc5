"""One batch in the middle of the run makes a matrix product pass the largest fp16 number."""

# expect: AMP401 error

import torch
from torch import nn
from training import Batch, Program, Training

STEPS = 60


def change_program(program: Program) -> None:
    if program.name == "chars":
        add_unknown_token(program.model)


def change_training(t: Training) -> None:
    load = t.program.load
    spoil = white_frame if t.program.name == "digits" else unknown_token

    def load_and_spoil(generator: torch.Generator, size: int) -> Batch:
        batch = load(generator, size)
        return spoil(t, batch) if t.step == STEPS // 2 else batch

    t.program.load = load_and_spoil


def white_frame(t: Training, batch: Batch) -> Batch:
    """A frame that could not be read is replaced by a white one, in the raw values of 16 bits."""
    batch.inputs[7] = 61440.0
    return batch


def add_unknown_token(model: nn.Module) -> None:
    """Gives the vocabulary one more row, whose values are far from those of all others."""
    old = model.token
    model.token = nn.Embedding(old.num_embeddings + 1, old.embedding_dim)
    with torch.no_grad():
        model.token.weight[:-1] = old.weight
        model.token.weight[-1] = 6e4


def unknown_token(t: Training, batch: Batch) -> Batch:
    batch.inputs = batch.inputs.clone()
    batch.inputs[0, 5] = t.model.token.num_embeddings - 1
    return batch
