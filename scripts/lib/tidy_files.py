"""Prints the files for clang-tidy: those of ours that the build compiles, or of these the ones that are asked for."""

import json
import sys
from pathlib import Path

OURS = ("trace", "analyzers", "reporters", "cli", "executor", "probe", "samples", "tests", "benchmarks")


def main() -> None:
    root = Path(__file__).resolve().parents[2]
    asked = {Path(name).resolve() for name in sys.argv[2:]}
    commands = json.loads(Path(sys.argv[1]).read_text())
    files = {Path(command["directory"], command["file"]).resolve() for command in commands}
    for file in sorted(files):
        if file.is_relative_to(root) and file.relative_to(root).parts[0] in OURS and (not asked or file in asked):
            print(file)


main()
