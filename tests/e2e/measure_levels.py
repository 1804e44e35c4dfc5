"""What each level can name: runs every recipe and every faulty program at every level and prints a table (Markdown) of
how many get the verdict that stands in their header, then the rules that a level did not name. Not a test: it is slow.

    measure_levels.py [--levels auto,full] [--jobs N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import harness
from expectations import Header, disagreements, read_header

HERE = Path(__file__).resolve().parent


def verdict(header: Header, level: str) -> list[str]:
    """What disagrees with the program's own words at this level."""
    family = header.path.parent.name
    folder = harness.fresh_folder(f"levels.{family}.{header.path.stem}.{level}")
    trace = folder / "run.ampscope"
    command = [
        harness.PYTHON,
        *(["-m", *header.launch] if header.launch else []),
        str(header.path),
        *(word.replace("{save}", str(folder / "weights.pt")) for word in header.arguments),
    ]
    try:
        watched = harness.execute_watched(command, trace, folder, level=level, **header.environment)
        return disagreements(header, harness.report(*harness.traces_beside(trace)), watched.stdout)
    except (harness.Failed, subprocess.TimeoutExpired) as failure:
        return [str(failure)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default=",".join(harness.LEVELS))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    levels = options.levels.split(",")

    paths = sorted([*HERE.glob("programs/recipes/*/[a-z]*.py"), *HERE.glob("programs/faulty/[a-z]*.py")])
    headers = [read_header(path) for path in paths]
    headers = [
        h for h in headers if not [tool for tool in h.needs if tool.startswith("python:") and not find_spec(tool[7:])]
    ]
    tasks = [(header, level) for header in headers for level in levels]
    with ThreadPoolExecutor(options.jobs) as pool:
        wrong = list(pool.map(lambda task: verdict(*task), tasks))

    right: dict[tuple[str, str], int] = defaultdict(int)
    programs: dict[str, int] = defaultdict(int)
    missed: dict[str, set[str]] = defaultdict(set)
    alarms: dict[str, int] = defaultdict(int)
    for header in headers:
        programs[header.path.parent.name] += 1
    for (header, level), sentences in zip(tasks, wrong, strict=True):
        if not sentences:
            right[header.path.parent.name, level] += 1
        elif header.quiet:
            alarms[level] += 1
            print(f"{level}: {header.path.name}: {sentences[0]}", file=sys.stderr)
        else:
            missed[level] |= {expectation.rule for expectation in header.expected}
            print(f"{level}: {header.path.name}: {sentences[0]}", file=sys.stderr)

    print("| programs | number | " + " | ".join(f"`{level}`" for level in levels) + " |")
    print("|---" * (2 + len(levels)) + "|")
    for family, number in programs.items():
        print(f"| {family} | {number} | " + " | ".join(str(right[family, level]) for level in levels) + " |")
    totals = [sum(right[family, level] for family in programs) for level in levels]
    print(f"| all | {sum(programs.values())} | " + " | ".join(map(str, totals)) + " |")
    print()
    for level in levels:
        rules = ", ".join(sorted(missed[level])) or "none"
        print(f"- `{level}`: {alarms[level]} alarms on right programs; rules missed in a program or more: {rules}")


if __name__ == "__main__":
    main()
