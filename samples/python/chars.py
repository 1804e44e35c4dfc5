"""Trains a small transformer on the characters of a book in mixed precision on the CPU."""

# expect: quiet

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from training import DATA, Batch, Program, cross_entropy, main

CONTEXT = 32
EMBEDDING = 16
WIDTH = 32
HEADS = 2
BLOCKS = 2


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(x).unflatten(-1, (3, HEADS, -1))
        query, key, value = (h.transpose(1, 2) for h in heads.unbind(2))
        x = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(x.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.feed_forward_norm = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        # A small table and a projection to the width, as ALBERT has them.
        self.token = nn.Embedding(vocabulary, EMBEDDING)
        self.project = nn.Linear(EMBEDDING, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary)

    def features(self, tokens: Tensor) -> Tensor:
        x = self.project(self.token(tokens)) + self.position
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.features(tokens))


class Book:
    def __init__(self) -> None:
        text = (DATA / "alice.txt").read_bytes()
        self.characters = sorted(set(text))
        number = {character: i for i, character in enumerate(self.characters)}
        tokens = torch.tensor([number[character] for character in text])
        split = len(tokens) * 9 // 10
        self.tokens, self.test_tokens = tokens[:split], tokens[split:]

    def windows(self, tokens: Tensor, places: Tensor) -> Batch:
        window = tokens[places[:, None] + torch.arange(CONTEXT + 1)]
        return Batch(window[:, :-1], window[:, 1:], places)

    def load(self, generator: torch.Generator, size: int) -> Batch:
        return self.windows(self.tokens, torch.randint(len(self.tokens) - CONTEXT, (size,), generator=generator))

    def loss(self, model: nn.Module) -> float:
        batch = self.windows(self.test_tokens, torch.arange(0, len(self.test_tokens) - CONTEXT, CONTEXT))
        return cross_entropy(model(batch.inputs), batch.targets).item()


def build(options: argparse.Namespace) -> Program:
    data = Book()
    return Program(
        name="chars",
        model=Transformer(len(data.characters)),
        data=data,
        load=data.load,
        evaluate=data.loss,
        measure="test loss",
        enough=lambda loss: loss <= 2.7,
        expected="2.7 or less",
        steps=120,
        batch_size=16,
        learning_rate=1e-2,
    )


if __name__ == "__main__":
    main(__doc__, build)
