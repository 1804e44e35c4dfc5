"""Running programs with and without ampscope, as a person would, and reading what it reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

COMMAND = os.environ["AMPSCOPE_COMMAND_UNDER_TEST"]
OUTPUT = Path(os.environ["AMPSCOPE_TEST_OUTPUT"])
PYTHON = sys.executable
SKIPPED = 77
LEVELS = ("ops", "grads", "auto", "full", "shadow")


class Failed(Exception):
    """What a test found wrong."""


@dataclass
class Ended:
    """A program that has ended. Its status is as a shell sees it."""

    status: int
    stdout: str
    stderr: str


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without what would reach into the tests; None removes a variable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AMPSCOPE_")}
    # One thread each: tests run side by side, and sums of several threads must not depend on how many there are.
    kept |= {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    for name, value in changes.items():
        if value is None:
            kept.pop(name, None)
        else:
            kept[name] = value
    return kept


def execute(command: list[str | Path], folder: Path, timeout: int = 240, **changes: str | None) -> Ended:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
    )
    status = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Ended(status, done.stdout, done.stderr)


def execute_watched(
    command: list[str | Path],
    trace: Path,
    folder: Path,
    level: str | None = None,
    timeout: int = 240,
    **changes: str | None,
) -> Ended:
    options = ["--level", level] if level else []
    return execute(
        [COMMAND, "run", "-o", trace, "--force", *options, "--", *command], folder, timeout=timeout, **changes
    )


def report(*traces: Path) -> dict:
    done = execute([COMMAND, "report", *traces, "--format", "json"], traces[0].parent)
    if done.status != 0:
        raise Failed(f"ampscope report ended with {done.status}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def traces_beside(trace: Path) -> list[Path]:
    """The traces of one run: the first process's and those of further ranks and processes."""
    return sorted(trace.parent.glob(f"{trace.stem}*{trace.suffix}"), key=lambda path: (len(path.name), path.name))


def fresh_folder(name: str) -> Path:
    """A folder for one test, emptied; it stays for looking into after a failure."""
    folder = OUTPUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder.resolve()


def have(tool: str) -> bool:
    return shutil.which(tool) is not None
