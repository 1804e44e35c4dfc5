"""The one observation of this process: brings the adapter, the protocol notes and the watch on exits together."""

from __future__ import annotations

import os
import threading

from . import _environment, _status, _torch_import
from ._adapter import Adapter, AttachError, load_adapter
from ._exits import ExitWatch
from ._protocol import ProtocolNotes

_lock = threading.RLock()


def _renew_lock() -> None:
    """In a forked child: another thread of the parent may have held the lock, and will never release it here."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)
_adapter: Adapter | None = None
_notes: ProtocolNotes | None = None
_exits: ExitWatch | None = None
_given_up = False


def attach() -> bool:
    """Starts observing if torch is there. Never raises: a failure is told once and remembered."""
    global _given_up
    with _lock:
        if _given_up or not _torch_import.torch_is_complete():
            return False
        if is_attached():
            return True
        try:
            _start()
        except AttachError as error:
            _given_up = True
            _status.report(str(error))
        except Exception as error:  # a fault of ours must not become one of the program's
            _given_up = True
            _status.report(f"attaching failed ({type(error).__name__}: {error})")
        return not _given_up


def _start() -> None:
    global _adapter, _notes, _exits
    _environment.prepare()
    adapter = _adapter or load_adapter()
    adapter.attach()
    _adapter = adapter
    if _exits is None:
        _exits = ExitWatch(detach, lambda: trace_path() is not None)
    _notes = ProtocolNotes(adapter)
    _exits.install()
    _notes.install()


def detach(how: str, detail: str | None = None) -> None:
    """Completes the trace and puts back what was wrapped; `how` as in ampscope_detach."""
    global _notes
    with _lock:
        if _adapter is None or not _adapter.is_attached():
            return
        if _notes is not None:
            _notes.remove()
            _notes = None
        _adapter.detach(how, detail)


def is_attached() -> bool:
    return _adapter is not None and _adapter.is_attached()


def adapter() -> Adapter | None:
    return _adapter


def mark_step() -> None:
    if _adapter is not None:
        _adapter.mark_step()


def trace_path() -> str | None:
    return _adapter.trace_path() or None if _adapter is not None else None
