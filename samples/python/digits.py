"""Trains a classifier of handwritten digits in mixed precision on the CPU."""

# expect: quiet

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from training import DATA, Batch, Program, main

HIDDEN = 128


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(64, HIDDEN)
        self.hidden = nn.Linear(HIDDEN, HIDDEN)
        self.dropout = nn.Dropout(0.1)
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, 10)

    def features(self, images: Tensor) -> Tensor:
        x = torch.relu(self.input(images))
        x = torch.relu(self.hidden(x))
        return self.norm(self.dropout(x))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.norm = nn.LayerNorm(32 * 2 * 2)
        self.head = nn.Linear(32 * 2 * 2, 10)

    def features(self, images: Tensor) -> Tensor:
        x = images.unflatten(1, (1, 8, 8))
        x = self.pool(torch.relu(self.bn1(self.conv1(x))))
        x = self.pool(torch.relu(self.bn2(self.conv2(x))))
        return self.norm(x.flatten(1))

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images))


def read_digits() -> tuple[Tensor, Tensor]:
    """Images of 64 grey values from 0 to 1, and the digit that each shows."""
    lines = (DATA / "digits.csv").read_text().splitlines()
    rows = torch.tensor([[int(value) for value in line.split(",")] for line in lines])
    return rows[:, :64] / 16, rows[:, 64]


class Digits:
    def __init__(self) -> None:
        images, labels = read_digits()
        is_test = torch.arange(len(images)) % 5 == 4
        self.images, self.labels = images[~is_test], labels[~is_test]
        self.test_images, self.test_labels = images[is_test], labels[is_test]

    def load(self, generator: torch.Generator, size: int) -> Batch:
        rows = torch.randint(len(self.images), (size,), generator=generator)
        return Batch(self.images[rows], self.labels[rows], rows)

    def accuracy(self, model: nn.Module) -> float:
        return (model(self.test_images).argmax(1) == self.test_labels).float().mean().item()


def build(options: argparse.Namespace) -> Program:
    data = Digits()
    return Program(
        name="digits",
        model=Convolutional() if options.convolution else Perceptron(),
        data=data,
        load=data.load,
        evaluate=data.accuracy,
        measure="test accuracy",
        enough=lambda accuracy: accuracy >= 0.94,
        expected="0.94 or more",
        steps=120,
        batch_size=64,
        learning_rate=5e-3,
    )


if __name__ == "__main__":
    main(__doc__, build, convolution=True)
