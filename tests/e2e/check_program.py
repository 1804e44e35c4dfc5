"""Runs one program without and with ampscope and compares: its output and exit status must be the same at every level,
and the report must say what the program's comments expect.

    check_program.py [--levels auto,full] [--expect FILE | --rule CODE] [--diagnosis] NAME PROGRAM ARGUMENT...

--diagnosis leaves the comparison out and runs the program only with ampscope.
--expect names another file to read the comments of; --rule stands for the comments of a program that is not Python (a
rule that must stand first, or "quiet"). {save} in an argument stands for a file of weights, which must be equal bit for
bit.
"""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

import harness
from expectations import Expectation, Header, disagreements, read_header


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--levels")
    parser.add_argument("--expect", type=Path)
    parser.add_argument("--rule")
    parser.add_argument("--diagnosis", action="store_true")
    parser.add_argument("name")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def filled(command: list[str], weights: Path) -> list[str]:
    return [str(weights) if part == "{save}" else part for part in command]


def same_weights(one: Path, other: Path) -> bool:
    if one.read_bytes() == other.read_bytes():
        return True
    import torch

    first, second = (torch.load(path, weights_only=True) for path in (one, other))
    return first.keys() == second.keys() and all(
        # As bytes: NaN equals itself then, and 0 differs from -0.
        first[key].dtype == second[key].dtype
        and torch.equal(first[key].flatten().view(torch.uint8), second[key].flatten().view(torch.uint8))
        for key in first
    )


def first_difference(one: str, other: str) -> str:
    for number, (left, right) in enumerate(zip(one.splitlines(), other.splitlines(), strict=False), 1):
        if left != right:
            return f"line {number}: {left!r} without, {right!r} with"
    return f"{len(one.splitlines())} lines without, {len(other.splitlines())} with"


def check_level(header: Header, command: list[str], level: str, folder: Path, plain: harness.Ended | None) -> list[str]:
    trace, weights = folder / f"{level}.ampscope", folder / f"{level}.pt"
    watched = harness.execute_watched(filled(command, weights), trace, folder, level=level, **header.environment)
    (folder / f"{level}.stderr").write_text(watched.stderr)
    wrong = []
    if watched.status != header.exit:
        wrong.append(f"exit status {watched.status} where {header.exit} was expected:\n{watched.stderr[-2000:]}")
    if plain and watched.stdout != plain.stdout:
        wrong.append("the output changed: " + first_difference(plain.stdout, watched.stdout))
    if plain and weights.exists() and not same_weights(folder / "plain.pt", weights):
        wrong.append("the weights changed")

    traces = harness.traces_beside(trace)
    if len(traces) != header.traces:
        names = ", ".join(path.name for path in traces) or "none"
        wrong.append(f"{header.traces} traces were expected, there are: {names}\n{watched.stderr[-2000:]}")
    if traces:
        wrong += disagreements(header, harness.report(*traces), watched.stdout)
    return wrong


def main() -> int:
    options = parse()
    program = Path(options.command[0]).resolve()
    if options.rule == "quiet":
        header = Header(program, quiet=True)
    elif options.rule:
        header = Header(program, expected=[Expectation(options.rule)])
    else:
        header = read_header(options.expect or program)
    levels = options.levels.split(",") if options.levels else header.levels
    for tool in header.needs:
        if not (find_spec(tool[7:]) if tool.startswith("python:") else harness.have(tool)):
            print(f"skipped: needs {tool}")
            return harness.SKIPPED

    command = [str(program), *options.command[1:], *header.arguments]
    if program.suffix == ".py":
        command = [harness.PYTHON, *(["-m", *header.launch] if header.launch else []), *command]
    folder = harness.fresh_folder(options.name)
    plain = None
    if not options.diagnosis:
        plain = harness.execute(filled(command, folder / "plain.pt"), folder, **header.environment)
    if plain and plain.status != header.exit:
        print(f"without ampscope it ended with {plain.status}:\n{plain.stdout[-1000:]}{plain.stderr[-2000:]}")
        return 1

    failed = False
    for level in levels:
        for sentence in check_level(header, command, level, folder, plain):
            failed = True
            print(f"{level}: {sentence}")
    if failed:
        print(f"see {folder}")
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Failed as failure:
        sys.exit(str(failure))
