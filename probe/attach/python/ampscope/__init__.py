"""Observes mixed-precision training in this process.

``import ampscope`` is all it takes: observation starts when torch is imported, or at once if it is. The trace is
``run.ampscope`` in the current folder, or what ``ampscope run`` asked for; it is made at the first backward pass, so a
process that does not train writes none. Look at it with ``ampscope report run.ampscope``.

Nothing here raises and nothing here changes a result. Where observing is not possible (a torch that is not supported,
no adapter for it), one line on stderr says why and what to do, and the program goes on.

Options are environment variables, read when observation starts: ``AMPSCOPE_OUTPUT`` (path; ``%p``, ``%r`` and ``%h``
stand for pid, rank and host), ``AMPSCOPE_LEVEL`` (``ops``, ``grads``, ``auto``, ``full``), ``AMPSCOPE_BUDGET``
(percent), ``AMPSCOPE_MAX_SIZE`` (bytes).
"""

from __future__ import annotations

from ._torch_import import when_torch_is_imported
from ._version import __version__

__all__ = ["__version__", "attach", "detach", "is_attached", "step", "trace_path"]


def attach() -> bool:
    """Starts observing; ``import ampscope`` has done so already, it is for going on after :func:`detach`.

    Returns whether this process is being observed afterwards. Before torch is imported there is nothing to observe:
    it gives False, and observation starts with torch's import.
    """
    try:
        from . import _session
    except ImportError as error:  # a Python that was built without ctypes
        from ._status import report

        report(f"this Python lacks what attaching needs ({error})")
        return False
    return _session.attach()


def detach() -> None:
    """Stops observing and completes the trace, as the end of the program does by itself, however it ends."""
    from . import _session

    _session.detach("detach")


def step() -> None:
    """Ends the current step here, for loops whose steps cannot be told from optimizer calls.

    From the first call on, steps end only where it is called. Does nothing while the process is not observed.
    """
    from . import _session

    _session.mark_step()


def is_attached() -> bool:
    """Whether this process is being observed."""
    from . import _session

    return _session.is_attached()


def trace_path() -> str | None:
    """Path of the trace, or None while none was made (nothing has run backward yet, or the process is not observed)."""
    from . import _session

    return _session.trace_path()


when_torch_is_imported(attach)
