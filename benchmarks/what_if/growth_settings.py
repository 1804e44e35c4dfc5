"""Does `ampscope tune` predict what other growth settings do? Trains with each of two settings, asks each run about the
other, and prints what was predicted beside what happened.

    python benchmarks/what_if/growth_settings.py --command build/dev/bin/ampscope

It needs the Python of a torch that ampscope has an adapter for; 4 runs of 15,000 steps take about two minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: (growth_factor, growth_interval): PyTorch's own, and the careful ones that people put in their place.
SETTINGS = [(2.0, 2000), (1.5, 5000)]


def train(steps: int, rate: float, growth: float, interval: int) -> None:
    """A tiny classifier; every 997th batch has eight times the loss. Prints the skips and the final scale."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    scaler = torch.amp.GradScaler("cpu", growth_factor=growth, growth_interval=interval)
    generator = torch.Generator().manual_seed(1)
    skips = 0
    for step in range(steps):
        inputs = torch.randn(16, 16, generator=generator)
        targets = inputs[:, :4].argmax(1)
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(inputs).float(), targets) * (8 if step % 997 == 500 else 1)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        before = scaler.get_scale()
        scaler.update()
        skips += scaler.get_scale() < before
    print(json.dumps({"skips": skips, "final_scale": scaler.get_scale()}))


def record(command: str, folder: Path, steps: int, rate: float, growth: float, interval: int) -> tuple[Path, dict]:
    trace = folder / f"{rate}-{growth}-{interval}.ampscope"
    program = [sys.executable, __file__, "--train", str(rate), str(growth), str(interval), "--steps", str(steps)]
    ended = subprocess.run(
        [command, "run", "--force", "-o", trace, "--", *program], capture_output=True, text=True, check=True
    )
    return trace, json.loads(next(line for line in ended.stdout.splitlines() if line.startswith("{")))


def ask(command: str, trace: Path, growth: float, interval: int) -> dict:
    question = ["--growth-factor", str(growth), "--growth-interval", str(interval)]
    ended = subprocess.run(
        [command, "tune", trace, "--format", "json", *question], capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)["scalers"][0]["asked"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default="ampscope", help="the ampscope command")
    parser.add_argument("--steps", type=int, default=15_000)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.0, 0.05], help="learning rates")
    parser.add_argument("--train", nargs=3, type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        rate, growth, interval = options.train
        train(options.steps, rate, growth, int(interval))
        return
    columns = ("learning rate", "recorded with", "asked about", "skips predicted (interval)", "skips")
    print("| " + " | ".join(columns) + " | final scale predicted | final scale |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for rate in options.rates:
            runs = [record(options.command, Path(name), options.steps, rate, *each) for each in SETTINGS]
            for own, other in ((0, 1), (1, 0), (0, 0)):
                asked = ask(options.command, runs[own][0], *SETTINGS[other])
                low, high = asked["skips_interval"]
                happened = runs[other][1]
                words = ["growth {:g}, interval {}".format(*SETTINGS[which]) for which in (own, other)]
                print(
                    f"| {rate:g} | {words[0]} | {words[1]} | {asked['skips']} ({low}–{high}) | {happened['skips']} "
                    f"| {asked['final_scale']:.10g} | {happened['final_scale']:.10g} |"
                )


if __name__ == "__main__":
    main()
