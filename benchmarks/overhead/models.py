"""The training loops that are measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Training:
    """A model and what takes one step of its training."""

    model: nn.Module
    step: Callable[[], None]


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, 8, width // 8).transpose(1, 2)
            for part in self.attention(self.norms[0](x)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, width: int = 256, layers: int = 4, vocabulary: int = 512) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.embedding(tokens))))


def with_scaler(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> Training:
    """fp16 with a loss scale, as a GPU recipe would have it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return Training(model, step)


def transformer() -> Training:
    """bf16, width 256, 4 layers, 4 sequences of 64 tokens: bound by arithmetic."""
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens, targets = torch.randint(512, (4, 64)), torch.randint(512, (4 * 64,))

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return Training(model, step)


def mlp() -> Training:
    """fp16, 64-256-256-10, batch 64: bound by what an operator call costs."""
    layers = [nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
    return with_scaler(nn.Sequential(*layers), torch.randn(64, 64), torch.randint(10, (64,)))


def cnn() -> Training:
    """fp16, three convolutions with batch norm on 16 pictures of 3 × 32 × 32."""
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(before, after, 3, stride=2, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return with_scaler(model, torch.randn(16, 3, 32, 32), torch.randint(10, (16,)))


MODELS = {"transformer": transformer, "mlp": mlp, "cnn": cnn}
