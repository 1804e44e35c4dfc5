"""Runs a callback as soon as torch's import has completed, and costs nothing until then."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in typing, which costs every Python program of a run several milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_executed = False  # torch's module body has run to its end


class TorchFinder:
    """Stands first on sys.meta_path until torch is there; finds nothing itself.

    The import system asks it about every module that is not loaded yet. For torch it lets the real finders answer and
    watches the loader they name. At any other name it looks whether torch has arrived in a way it was not asked about
    (a finder in front of it, a module put into sys.modules by hand, an import that was under way when it came).
    """

    def __init__(self, callback: Callable[[], Any]) -> None:
        self._callback = callback

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "torch":
            if torch_is_complete():
                self._finish()
            return None
        spec = self._ask_the_others(name, path, target)
        if spec is not None and spec.loader is not None:
            self._watch(spec.loader)
        return spec

    def _ask_the_others(self, name: str, path: Any, target: Any) -> Any:
        finders = list(sys.meta_path)
        # Those in front of this one have been asked already.
        behind = finders[finders.index(self) + 1 :] if self in finders else finders
        for finder in behind:
            find_spec = getattr(finder, "find_spec", None)
            spec = find_spec(name, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        original = getattr(loader, "exec_module", None)
        if original is None or isinstance(loader, type):
            return

        def exec_module(module: Any) -> None:
            global _executed
            # Gone before torch runs: an import that fails leaves the loader as it was; the next is watched anew.
            del loader.exec_module
            original(module)
            _executed = True
            self._finish()

        try:
            # On the instance, so that torch.__loader__ stays the object it always is.
            loader.exec_module = exec_module
        except (AttributeError, TypeError):
            pass  # a loader without attributes; the question after the next module sees that torch is there

    def _finish(self) -> None:
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return  # another thread was first
        self._callback()


def torch_is_complete() -> bool:
    """Whether the real torch (not a stand-in of some test) is imported to its end."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "_C"):
        return False
    return _executed or not getattr(getattr(torch, "__spec__", None), "_initializing", False)


def when_torch_is_imported(callback: Callable[[], Any]) -> None:
    """Calls back now if torch is there, else in the thread that imports it, before its import statement returns."""
    if torch_is_complete():
        callback()
    elif not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder(callback))
