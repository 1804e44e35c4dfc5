"""How the process ends: completes the trace when Python exits, by os._exit too, and says by which exception."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable
from types import CodeType
from typing import NoReturn

# Outermost code of a program that Python itself runs: a script, -c, or -m.
_OUTERMOST = ("<module>", "_run_module_as_main")
_LONGEST_DETAIL = 500

Detach = Callable[[str, "str | None"], None]
HasTrace = Callable[[], bool]


class ExitWatch:
    """Calls `detach` once before this process ends.

    Forked children share its state. One that trains has a trace of its own, which it completes; the others, loader
    workers for the most part, end as they would.
    """

    def __init__(self, detach: Detach, has_trace: HasTrace) -> None:
        self._detach = detach
        self._has_trace = has_trace
        self._pid = os.getpid()
        self._installed = False

    def install(self) -> None:
        if self._installed:
            return
        self._installed = True
        atexit.register(self._at_exit)
        self._wrap_os_exit()

    def _at_exit(self) -> None:
        if not self._is_ours():
            return
        error = unhandled_exception()
        if error is None:
            self._detach("exit", None)
        else:
            self._detach("exception", describe(error))

    def _is_ours(self) -> bool:
        return os.getpid() == self._pid or self._has_trace()

    def _wrap_os_exit(self) -> None:
        original = os._exit

        @functools.wraps(original)
        def _exit(status: int) -> NoReturn:
            try:
                if self._is_ours():
                    self._detach("_exit", None)
            finally:
                original(status)

        # The original says it lives in posix; this one must be found where it stands, or it could not be pickled.
        _exit.__module__ = "os"
        os._exit = _exit


def unhandled_exception() -> BaseException | None:
    """The exception that ends the program, if one does.

    The interpreter leaves it in sys.last_exc (sys.last_value before 3.12) when it prints the traceback. That is enough,
    and sys.excepthook stays untouched: libraries behave differently when it is not the original.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException) or hasattr(sys, "ps1"):
        return None
    # pytest and debuggers store exceptions there that did not end the program; those start further in.
    trace = error.__traceback__
    code: CodeType | None = trace.tb_frame.f_code if trace is not None else None
    return error if code is None or code.co_name in _OUTERMOST else None


def describe(error: BaseException) -> str:
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        return name
    return f"{name}: {text}"[:_LONGEST_DETAIL] if text else name
