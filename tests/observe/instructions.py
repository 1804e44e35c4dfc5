"""Compares what the probe and an empty callback add to a training loop, in instructions, a count that the machine's
load does not change. Fails where the ratio has grown beyond what is allowed for the level.

    instructions.py <steady_path> <adapter> <level> <folder>

Ends with 77 (skipped) where there is no valgrind.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

#: Extra instructions of the probe to those of an empty callback with inputs and outputs, in a loop of tiny tensors,
#: where nearly all is the cost of a call. `ops` was 1.78 when this was written; the other two are bounds only.
ALLOWED = {"ops": 2.0, "auto": 5.0, "full": 9.0}


def main() -> int:
    program, adapter, level, folder = sys.argv[1:]
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return 77
    out = Path(folder) / f"instructions.{level}"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    command = [
        "valgrind",
        "--tool=callgrind",
        "--collect-atstart=no",
        "--toggle-collect=counted_steps",
        "--dump-after=counted_steps",
        f"--callgrind-out-file={out / 'profile'}",
        program,
        adapter,
        level,
        str(out / "run.ampscope"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1500)
    # Allocations are judged by a test of their own; under valgrind they are counted in another place.
    if done.returncode not in (0, 1):
        print(done.stdout[-2000:], done.stderr[-2000:])
        return 1
    # One profile for each of the four counted passes, in order; a last one is empty.
    totals = []
    for number in range(1, 5):
        text = (out / f"profile.{number}").read_text()
        totals.append(int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1]))
    alone, nothing, probe, after = totals
    floor, extra = nothing - alone, probe - alone
    print(f"{alone} instructions alone, {floor} more with an empty callback")
    print(f"{extra} more at {level}: {extra / floor:.2f} times the empty callback's")
    print(f"{after - alone} more after observation has ended")
    if floor <= 0:
        print("the reference shows nothing")
        return 1
    if extra / floor > ALLOWED[level]:
        print(f"more than {ALLOWED[level]} times what an empty callback costs")
        return 1
    # 1 % for what differs from pass to pass anyway.
    if after - alone > 0.01 * alone:
        print("what is not observed costs something")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
