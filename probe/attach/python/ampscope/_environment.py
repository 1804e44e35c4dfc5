"""The options of a process that was not started by `ampscope run` but imports ampscope by itself."""

from __future__ import annotations

import json
import os
import sys
import uuid


def prepare() -> None:
    """Fills in what `ampscope run` would have set. Leaves what is set alone, but makes the trace's path absolute."""
    output = os.environ.get("AMPSCOPE_OUTPUT")
    if output:
        os.environ["AMPSCOPE_OUTPUT"] = os.path.abspath(output)
    else:
        # In os.environ, so that processes started from here write beside this trace and carry the same run id.
        os.environ["AMPSCOPE_OUTPUT"] = _free_path(os.getcwd())
    os.environ.setdefault("AMPSCOPE_RUN_ID", _run_id())
    os.environ.setdefault("AMPSCOPE_COMMAND", json.dumps(sys.orig_argv))
    os.environ.setdefault("AMPSCOPE_CWD", os.getcwd())


def _run_id() -> str:
    # The ranks of one launch share no environment of ours, but torchrun gives them a common name and restart count.
    launch = os.environ.get("TORCHELASTIC_RUN_ID")
    if launch and launch != "none":
        seed = ":".join((launch, os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")))
        return uuid.uuid5(uuid.NAMESPACE_OID, seed).hex
    return uuid.uuid4().hex


def _free_path(folder: str) -> str:
    """run.ampscope, or run-2.ampscope … where an earlier run has left one; overwriting it would be worse."""
    rank = os.environ.get("RANK", "0")
    suffix = f".rank{rank}" if rank.isdigit() and int(rank) > 0 else ""
    stem, number = "run", 1
    while os.path.exists(os.path.join(folder, f"{stem}{suffix}.ampscope")):
        number += 1
        stem = f"run-{number}"
    return os.path.join(folder.replace("%", "%%"), f"{stem}.ampscope")
