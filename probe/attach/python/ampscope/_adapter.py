"""Finds and loads the adapter: the shared library, built for one torch minor version, that does the observing."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from pathlib import Path
from typing import Any

ABI_VERSION = 1  # AMPSCOPE_ABI_VERSION of probe/api/ampscope/probe_c.h
OLDEST_TORCH, NEWEST_TORCH = (2, 11), (2, 15)


class AttachError(Exception):
    """Why this process cannot be observed, in a sentence that also says what to do."""


class Adapter:
    """The C interface of probe/api/ampscope/probe_c.h, loaded. Every function may be called from any thread."""

    def __init__(self, path: Path) -> None:
        try:
            # RTLD_LOCAL: nothing of ours takes part in the program's symbol resolution.
            self._library = ctypes.CDLL(str(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        except OSError as error:
            raise AttachError(f"{path.name} does not load ({error}); build ampscope again with this torch") from error
        self._declare("ampscope_abi_version", ctypes.c_int)
        self._declare("ampscope_torch_version", ctypes.c_char_p)
        self._declare("ampscope_last_error", ctypes.c_char_p)
        self._declare("ampscope_attach", ctypes.c_int)
        self._declare("ampscope_detach", None, ctypes.c_char_p, ctypes.c_char_p)
        self._declare("ampscope_is_attached", ctypes.c_int)
        self._declare("ampscope_mark_step", None)
        self._declare("ampscope_trace_path", ctypes.c_char_p)
        self.note_optimizer_step = self._declare(
            "ampscope_note_optimizer_step",
            None,
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_double,
            ctypes.c_int,
            ctypes.c_int,
        )
        self.note_schedule_step = self._declare(
            "ampscope_note_schedule_step", None, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int
        )
        self.note_scale_read = self._declare("ampscope_note_scale_read", None, ctypes.c_size_t, ctypes.c_int)
        self.note_scaler_made = self._declare("ampscope_note_scaler_made", None, ctypes.c_size_t)
        self.note_scaler_restored = self._declare("ampscope_note_scaler_restored", None, ctypes.c_size_t)
        self.note_optimizer_restored = self._declare("ampscope_note_optimizer_restored", None, ctypes.c_size_t)
        self.note_optimizer_made = self._declare("ampscope_note_optimizer_made", None)
        self.note_scaler_refusal = self._declare(
            "ampscope_note_scaler_refusal", None, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_uint32
        )
        self.note_autocast = self._declare(
            "ampscope_note_autocast",
            ctypes.c_int64,
            ctypes.c_char_p,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
        )
        self.note_autocast_use = self._declare("ampscope_note_autocast_use", None, ctypes.c_int64)
        self.note_parameter = self._declare(
            "ampscope_note_parameter",
            None,
            ctypes.c_size_t,
            ctypes.c_size_t,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_char_p,
        )

    def _declare(self, name: str, result: Any, *arguments: Any) -> Any:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise AttachError(f"the adapter lacks {name}; build and install ampscope as one") from error
        function.restype = result
        function.argtypes = arguments
        return function

    def note_scaler_region(self) -> Any:
        """The note around calls of a scaler, which only runs with a budget need."""
        return self._declare("ampscope_note_scaler_region", None, ctypes.c_int)

    def note_cost(self, nanoseconds: float) -> None:
        self._declare("ampscope_note_cost", None, ctypes.c_double)(nanoseconds)

    def abi_version(self) -> int:
        return int(self._library.ampscope_abi_version())

    def torch_version(self) -> str:
        return str(self._library.ampscope_torch_version().decode())

    def attach(self) -> None:
        if self._library.ampscope_attach() != 0:
            raise AttachError((self._library.ampscope_last_error() or b"attaching failed").decode(errors="replace"))

    def detach(self, how: str, detail: str | None) -> None:
        self._library.ampscope_detach(how.encode(), detail.encode(errors="replace") if detail is not None else None)

    def is_attached(self) -> bool:
        return bool(self._library.ampscope_is_attached())

    def mark_step(self) -> None:
        self._library.ampscope_mark_step()

    def trace_path(self) -> str:
        return os.fsdecode(self._library.ampscope_trace_path() or b"")


def load_adapter() -> Adapter:
    """Loads the adapter for the torch that is imported.

    Raises AttachError where this torch is not supported, or where no adapter was built for it.
    """
    version = _torch_minor_version()
    name = f"libampscope_probe_torch{version}.so"
    folders = library_folders()
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        raise AttachError(
            f"there is no adapter for torch {version} in {folders[0]}; install ampscope into this environment "
            "(pip install --no-build-isolation . in its source folder)"
        )
    adapter = Adapter(path)
    if adapter.abi_version() != ABI_VERSION or adapter.torch_version() != version:
        raise AttachError(
            f"{path} is for torch {adapter.torch_version()} and interface {adapter.abi_version()}, not for torch "
            f"{version} and interface {ABI_VERSION}; build and install ampscope as one"
        )
    return adapter


def _torch_minor_version() -> str:
    full = str(sys.modules["torch"].__version__)
    match = re.match(r"(\d+)\.(\d+)", full)
    minor = (int(match[1]), int(match[2])) if match else (0, 0)
    if not OLDEST_TORCH <= minor <= NEWEST_TORCH:
        raise AttachError(
            f"torch {full} is not supported; use torch {OLDEST_TORCH[0]}.{OLDEST_TORCH[1]} to "
            f"{NEWEST_TORCH[0]}.{NEWEST_TORCH[1]}"
        )
    return f"{minor[0]}.{minor[1]}"


def library_folders() -> list[Path]:
    """Where adapters may lie, best first; at least one entry."""
    package = Path(__file__).resolve().parent
    candidates = []
    if folder := os.environ.get("AMPSCOPE_LIB_DIR"):
        candidates.append(Path(folder))  # `ampscope run` names the one beside itself
    candidates += [
        package.parent.parent,  # this package is <folder>/python/ampscope
        Path(sys.prefix) / "lib" / "ampscope",  # pip install
        # pip install --user and --prefix: this package is <prefix>/lib/pythonX.Y/site-packages/ampscope
        *(prefix / "lib" / "ampscope" for prefix in package.parents[3:4]),
        package.parent / "lib" / "ampscope",  # pip install --target
    ]
    return [folder for folder in candidates if folder.is_dir()] or candidates[:1]
