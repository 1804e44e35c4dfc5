"""Tells once that observing is off: to the person on stderr, to `ampscope run` through the file it named."""

from __future__ import annotations

import json
import os
import sys


def report(message: str) -> None:
    """Says why the run goes on unobserved, and spares the processes started from here the same failure."""
    sentence = " ".join(message.split())
    try:
        sys.stderr.write(f"ampscope: {sentence}; the run goes on without it\n")
        sys.stderr.flush()
    except Exception:
        pass  # stderr closed or replaced by something that does not write
    status_file = os.environ.get("AMPSCOPE_STATUS_FILE")
    # Workers inherit the environment; without the name of a trace none of them tries again.
    os.environ.pop("AMPSCOPE_OUTPUT", None)
    if not status_file:
        return
    line = json.dumps({"level": "error", "message": sentence, "pid": os.getpid()}) + "\n"
    try:
        # One write on a descriptor in append mode: lines of several ranks do not mix.
        descriptor = os.open(status_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
    except OSError:
        pass  # already told on stderr
