"""Measures what watching a training run costs, side by side with what else does it.

Every round takes some steps in each process, in another order each time, and the cost of a case is the ratio to the
steps without anything in the same round. CPU time of the whole process, so that the recorder's own thread counts and
other users of the machine do not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LEVELS = ("ops", "grads", "auto", "full")
PEERS = (
    "torch.profiler, shapes",
    "detect_anomaly",
    "dispatch mode, nothing",
    "dispatch mode, same values",
    "histc of gradients",
)
#: Steps of one segment: long enough against the clock, short enough to interleave.
STEPS = {"transformer": 2, "mlp": 40, "cnn": 10}
SLOW = {"dispatch mode, same values"}


class Worker:
    """A process that trains on demand; with `level` under `ampscope run`."""

    def __init__(self, arguments: argparse.Namespace, folder: Path, level: str | None) -> None:
        command = [sys.executable, str(HERE / "worker.py"), str(arguments.core)]
        if level:
            trace = folder / f"{level}.ampscope"
            command = [arguments.ampscope, "run", "--quiet", "--level", level, "-o", str(trace), "--", *command]
        # Memory that was freed stays with the process: page faults are not what is measured.
        kept = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **kept}
        )
        self.answer("ready")

    def answer(self, expected: str | None = None) -> str:
        line = self.process.stdout.readline().strip()
        if not line or (expected and line != expected):
            sys.exit(f"a worker ended early ({' '.join(map(str, self.process.args))})")
        return line

    def take(self, model: str, peer: str, steps: int) -> float:
        """CPU seconds a step."""
        self.process.stdin.write(f"{model}\t{peer}\t{steps}\n")
        self.process.stdin.flush()
        return float(self.answer().split()[0]) / steps

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


@dataclass
class Row:
    model: str
    case: str
    seconds: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)

    def summary(self) -> dict:
        return {
            "model": self.model,
            "case": self.case,
            "cpu_ms_per_step": statistics.median(self.seconds) * 1000,
            "ratio": statistics.median(self.ratios),
            "ratio_min": min(self.ratios),
            "ratio_max": max(self.ratios),
            "rounds": len(self.ratios),
        }


def measure(arguments: argparse.Namespace) -> list[dict]:
    shuffled = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        plain = Worker(arguments, Path(folder), None)
        cases = {"none again": (plain, "none again")}
        cases |= {peer: (plain, peer) for peer in PEERS}
        workers = {level: Worker(arguments, Path(folder), level) for level in LEVELS}
        cases |= {f"ampscope, {level}": (worker, "none") for level, worker in workers.items()}
        rows = []
        for model in arguments.models:
            steps = STEPS[model]
            for worker in (plain, *workers.values()):
                worker.take(model, "none", steps * arguments.warm)
            of_model = {case: Row(model, case) for case in ("none", *cases)}
            for _ in range(arguments.rounds):
                base = plain.take(model, "none", steps)
                seconds = {"none": base}
                for case in shuffled.sample(list(cases), len(cases)):
                    worker, peer = cases[case]
                    seconds[case] = worker.take(model, peer, max(1, steps // 10) if case in SLOW else steps)
                # Both sides of the round: the machine may have changed its pace in between.
                base = (base + plain.take(model, "none", steps)) / 2
                for case, value in seconds.items():
                    of_model[case].seconds.append(value)
                    of_model[case].ratios.append(value / base)
            rows += [row.summary() for row in of_model.values()]
            print(f"{model}: {arguments.rounds} rounds", file=sys.stderr)
        for worker in (plain, *workers.values()):
            worker.end()
    return rows


def machine() -> dict:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    import torch

    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def table(rows: list[dict]) -> str:
    models = list(dict.fromkeys(row["model"] for row in rows))
    found = {(row["case"], row["model"]): row for row in rows}
    lines = ["| | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    for case in dict.fromkeys(row["case"] for row in rows):
        cells = []
        for model in models:
            row = found[case, model]
            if case == "none":
                cells.append(f"{row['cpu_ms_per_step']:.1f} ms")
            else:
                cells.append(f"{row['ratio']:.2f} [{row['ratio_min']:.2f}, {row['ratio_max']:.2f}]")
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ampscope", required=True, help="the command to measure")
    parser.add_argument("--models", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm", type=int, default=5, help="segments before the first round")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("-o", "--output", type=Path, help="stem of the .md and .json to write")
    arguments = parser.parse_args()
    before = machine()
    rows = measure(arguments)
    text = table(rows)
    print(text)
    if arguments.output:
        arguments.output.with_suffix(".md").write_text(text + "\n")
        result = {"machine": before, "load_after": os.getloadavg()[0], "rows": rows}
        arguments.output.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
