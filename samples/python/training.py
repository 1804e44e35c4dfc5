"""What the two samples share: options, the training step as it is meant to be, and the loop around it.

`train_step` below is the model of right use of autocast and GradScaler with gradient accumulation, clipping and a
schedule. Each file in faults/ puts a mistake that people make in the place of one part: its `change_program` alters the
model or the data, its `change_training` what the loop works with, its `train_step` stands for the one here.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

DATA = Path(__file__).resolve().parent.parent / "data"
FAULTS = Path(__file__).resolve().parent / "faults"
PRECISIONS = {"fp32": None, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass
class Batch:
    inputs: Tensor
    targets: Tensor
    index: Tensor
    """Which samples these are: rows of the table of digits, places in the book."""


@dataclass
class Program:
    """One of the two samples: what is trained on what, and what it must reach."""

    name: str
    model: nn.Module
    data: object
    load: Callable[[torch.Generator, int], Batch]
    """Draws a training batch of the given size."""
    evaluate: Callable[[nn.Module], float]
    measure: str
    """What `evaluate` returns: "test accuracy" or "test loss"."""
    enough: Callable[[float], bool]
    expected: str
    steps: int
    batch_size: int
    learning_rate: float


@dataclass
class Training:
    """Everything a training step needs, put together once before the loop."""

    program: Program
    steps: int
    dtype: torch.dtype | None
    """Of autocast; None trains in fp32."""
    generator: torch.Generator
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    scaler: torch.amp.GradScaler
    accumulation: int = 2
    max_norm: float = 1.0
    step: int = 0

    def autocast(self) -> torch.autocast:
        return torch.autocast("cpu", dtype=self.dtype or torch.bfloat16, enabled=self.dtype is not None)

    def micro_batches(self) -> list[Batch]:
        size = self.program.batch_size // self.accumulation
        return [self.program.load(self.generator, size) for _ in range(self.accumulation)]


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


def train_step(t: Training, batches: list[Batch]) -> float:
    """One optimizer step over some micro-batches; returns the mean loss."""
    t.optimizer.zero_grad()
    total = 0.0
    for batch in batches:
        with t.autocast():
            loss = cross_entropy(t.model(batch.inputs), batch.targets) / len(batches)
        t.scaler.scale(loss).backward()
        total += loss.item()
    t.scaler.unscale_(t.optimizer)
    nn.utils.clip_grad_norm_(t.model.parameters(), t.max_norm)
    t.scaler.step(t.optimizer)
    scale = t.scaler.get_scale()
    t.scaler.update()
    # A scale that fell tells that the step was skipped; the schedule must wait then.
    if t.scaler.get_scale() >= scale:
        t.scheduler.step()
    return total


def fault_names() -> list[str]:
    return sorted(path.stem.replace("_", "-") for path in FAULTS.glob("[a-z]*.py"))


def load_fault(name: str):
    return importlib.import_module("faults." + name.replace("-", "_"))


def list_faults() -> None:
    for name in fault_names():
        print(f"{name:24} {load_fault(name).__doc__.strip().splitlines()[0]}")


def parse_options(description: str, convolution: bool) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, metavar="N", help="optimizer steps (default: enough to learn the task)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--precision", choices=PRECISIONS, help="default: fp16, for convolutions bf16")
    parser.add_argument("--save", metavar="FILE", help="write the final weights")
    parser.add_argument("--print-losses", action="store_true", help="print every loss exactly, in hexadecimal")
    parser.add_argument("--fault", choices=fault_names(), metavar="NAME", help="train with a mistake in it")
    parser.add_argument("--list-faults", action="store_true", help="print the names for --fault and end")
    if convolution:
        # fp16 convolutions are emulated on most processors, and their backward is hundreds of times slower.
        parser.add_argument("--convolution", action="store_true", help="a small convolutional network, in bf16")
    return parser.parse_args()


def run(program: Program, options: argparse.Namespace, precision: str) -> int:
    """Trains, evaluates, and returns the exit status: 1 when a healthy run of full length did not learn."""
    fault = load_fault(options.fault) if options.fault else None
    if hasattr(fault, "change_program"):
        fault.change_program(program)
    steps = options.steps or getattr(fault, "STEPS", program.steps)
    dtype = PRECISIONS[options.precision or getattr(fault, "PRECISION", precision)]
    optimizer = torch.optim.AdamW(program.model.parameters(), lr=program.learning_rate)
    training = Training(
        program=program,
        steps=steps,
        dtype=dtype,
        generator=torch.Generator().manual_seed(options.seed),
        model=program.model,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.OneCycleLR(optimizer, program.learning_rate, total_steps=steps + 1),
        scaler=torch.amp.GradScaler("cpu", enabled=dtype is torch.float16),
    )
    step = train_step
    if fault:
        print(f"fault: {options.fault}: {fault.__doc__.strip().splitlines()[0]}")
        step = getattr(fault, "train_step", train_step)
        if hasattr(fault, "change_training"):
            fault.change_training(training)

    taken = []
    optimizer.register_step_post_hook(lambda *_: taken.append(training.step))
    training.model.train()
    for training.step in range(steps):
        loss = step(training, training.micro_batches())
        if options.print_losses:
            print(f"loss {training.step} {float.hex(loss)}")
        elif training.step % max(1, steps // 10) == 0 or training.step == steps - 1:
            print(f"step {training.step:4}  loss {loss:.4g}  lr {training.scheduler.get_last_lr()[0]:.2e}")

    scale = f", loss scale {training.scaler.get_scale():g}" if training.scaler.is_enabled() else ""
    print(f"{steps - len(taken)} of {steps} steps skipped{scale}")

    training.model.eval()
    with torch.no_grad(), training.autocast():
        reached = program.evaluate(training.model)
    print(f"{program.measure} {reached:.4f} (healthy: {program.expected} after {program.steps} steps)")
    if options.save:
        torch.save(training.model.state_dict(), options.save)
    if fault is None and steps >= program.steps and not program.enough(reached):
        print(f"{program.name} did not learn: {program.measure} {reached:.4f}", file=sys.stderr)
        return 1
    return 0


def main(description: str, build: Callable[[argparse.Namespace], Program], convolution: bool = False) -> None:
    options = parse_options(description, convolution)
    if options.list_faults:
        list_faults()
        return
    # The models are so small that handing work to a second thread costs more than it saves.
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    precision = "bf16" if convolution and options.convolution else "fp16"
    sys.exit(run(build(options), options, precision))
