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

import peers

HERE = Path(__file__).resolve().parent
#: Name of a case and the options of `ampscope run` for it.
LEVELS = {
    "ampscope, ops": ["--level", "ops"],
    "ampscope, grads": ["--level", "grads"],
    "ampscope, auto": ["--level", "auto"],
    "ampscope, full": ["--level", "full"],
    "ampscope, budget 2%": ["--budget", "2%"],  # BUDGET
}
PEERS = (
    "empty callback",
    "torch.profiler, shapes",
    "detect_anomaly",
    "DebugUnderflowOverflow",
    "dispatch mode, nothing",
    "dispatch mode, same values",
    "histc of gradients",
)
BUDGET = "ampscope, budget 2%"
MSPROBE = "msprobe, statistics L1"
#: What is promised of a case, as a ratio to the steps without anything.
LIMITS = {
    "ampscope, auto": {"transformer": 1.12, "mlp": 1.20, "cnn": 1.10},
    "ampscope, full": {"transformer": 1.35, "mlp": 1.50, "cnn": 1.35},
    "ampscope, budget 2%": {"transformer": 1.025, "mlp": 1.025, "cnn": 1.025},
}
#: What is promised of the extra time of a case: at most so many times the other's, and so much more.
SHARES = (
    ("ampscope, ops", 1.5, "empty callback", 0.0),
    ("ampscope, ops", 0.6, "torch.profiler, shapes", 0.0),
    ("ampscope, grads", 1.0, "ampscope, ops", 0.03),
    ("ampscope, full", 1 / 4, "detect_anomaly", 0.0),
    ("ampscope, full", 1 / 3, "DebugUnderflowOverflow", 0.0),
    ("ampscope, full", 1 / 30, "dispatch mode, same values", 0.0),
    ("ampscope, auto", 1 / 10, MSPROBE, 0.0),
    ("ampscope, auto", 1.0, "dispatch mode, nothing", 0.0),
)
#: Steps of one segment: long enough against the clock, short enough to interleave.
STEPS = {"transformer": 2, "mlp": 40, "cnn": 10}
SLOW = {"dispatch mode, same values", MSPROBE}


class Worker:
    """A process that trains on demand; with `options` under `ampscope run`."""

    def __init__(
        self, arguments: argparse.Namespace, folder: Path, options: list[str] | None = None, tool: tuple[str, ...] = ()
    ) -> None:
        command = [sys.executable, str(HERE / "worker.py"), str(arguments.core), *tool]
        if options is not None:
            trace = folder / f"{'-'.join(options).strip('-')}.ampscope"
            command = [arguments.ampscope, "run", "--quiet", *options, "-o", str(trace), "--", *command]
        # Memory that was freed stays with the process: page faults are not what is measured.
        kept = {"MALLOC_TRIM_THRESHOLD_": str(1 << 34), "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
                "MALLOC_TOP_PAD_": str(1 << 28), "OMP_NUM_THREADS": "1"}  # fmt: skip
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **kept}
        )
        self.answer("ready")

    def answer(self, expected: str | None = None) -> str:
        line = self.process.stdout.readline().strip()
        while expected and line and line != expected:  # what a tool prints while it is loaded
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
        plain = Worker(arguments, Path(folder))
        absent = peers.missing()
        for peer, how in absent.items():
            print(f"{peer} is left out ({how})", file=sys.stderr)
        cases = {"none again": (plain, "none again")}
        cases |= {peer: (plain, peer) for peer in PEERS if peer not in absent}
        workers = {case: Worker(arguments, Path(folder), options) for case, options in LEVELS.items()}
        if MSPROBE not in absent:
            workers[MSPROBE] = Worker(arguments, Path(folder), tool=("msprobe", "L1", folder))
        cases |= {case: (worker, "none") for case, worker in workers.items()}
        cases = {case: which for case, which in cases.items() if not arguments.cases or case in arguments.cases}
        rows = []
        for model in arguments.models:
            steps = STEPS[model]
            for worker in (plain, *workers.values()):
                # A budget pays back what its first steps cost before it is what it is to be.
                segments = arguments.warm * (20 if worker is workers[BUDGET] else 1)
                slow = worker is workers.get(MSPROBE)
                worker.take(model, "none", max(1, steps // 10) if slow else steps * segments)
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
    import torch  # the workers have measured; nothing is timed here

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


def goals(rows: list[dict]) -> list[dict]:
    """Each promise, by model: what was measured and whether it holds."""
    ratio = {(row["case"], row["model"]): row["ratio"] for row in rows}
    found = []
    for case, limits in LIMITS.items():
        for model, limit in limits.items():
            if (case, model) in ratio:
                found.append({"goal": f"{case} at most {limit}", "model": model, "measured": ratio[case, model],
                              "limit": limit, "met": ratio[case, model] <= limit})  # fmt: skip
    for case, share, other, more in SHARES:
        words = f"{case}: extra time at most {share:.3g} of {other}" + (f" and {more} more" if more else "")
        for model in STEPS:
            if (case, model) not in ratio or (other, model) not in ratio:
                continue
            extra, limit = ratio[case, model] - 1, share * (ratio[other, model] - 1) + more
            found.append({"goal": words, "model": model, "measured": extra, "limit": limit, "met": extra <= limit})
    return found


def goal_table(found: list[dict]) -> str:
    models = list(dict.fromkeys(each["model"] for each in found))
    lines = ["| goal | " + " | ".join(models) + " |", "|---|" + "---|" * len(models)]
    for goal in dict.fromkeys(each["goal"] for each in found):
        of_goal = {each["model"]: each for each in found if each["goal"] == goal}
        cells = [
            f"{of_goal[model]['measured']:.3f} of {of_goal[model]['limit']:.3f}{'' if of_goal[model]['met'] else ' ✗'}"
            if model in of_goal
            else ""
            for model in models
        ]
        lines.append(f"| {goal} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ampscope", required=True, help="the command to measure")
    parser.add_argument("--models", nargs="+", choices=list(STEPS), default=list(STEPS))
    parser.add_argument("--cases", nargs="+", help="only these rows")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--warm", type=int, default=5, help="segments before the first round")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("-o", "--output", type=Path, help="stem of the .md and .json to write")
    arguments = parser.parse_args()
    before = machine()
    rows = measure(arguments)
    kept = goals(rows)
    text = table(rows) + "\n\n" + goal_table(kept)
    print(text)
    if arguments.output:
        arguments.output.with_suffix(".md").write_text(text + "\n")
        result = {"machine": before, "load_after": os.getloadavg()[0], "rows": rows, "goals": kept}
        arguments.output.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
