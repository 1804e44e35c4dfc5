"""Notes about the training protocol that no operator shows: which optimizer stepped, schedules, reads of the scale.

What is wrapped stays what it was wherever a program looks: class attributes give the original function, optimizers are
reached through torch's own global hooks, and code under torch.compile does not see the notes.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import threading
import time
import weakref
from types import CodeType, FrameType, MethodType
from typing import Any

from ._adapter import Adapter
from ._program_text import use_as_factor

# From an optimizer's hook up to GradScaler.step there are profile_hook_step, the schedule's step counter and what
# Lightning or accelerate put between; deeper means that somebody else called the optimizer.
_SCALER_SEARCH_DEPTH = 12
_CONSTRUCTOR_SEARCH_DEPTH = 4
# torch.cuda.amp.autocast and torch.cpu.amp.autocast are classes over torch.autocast, marked as deprecated.
_AUTOCAST_CLASSES = ("autocast_mode.py", "typing_extensions.py")
# warnings.warn(stacklevel=2) in LRScheduler.step must name the program's line, not the wrapper's: frames of files named
# like this do not count, for warnings as for the import system whose file it is.
_FILE_NOT_COUNTED = "<ampscope wrapper, for warnings what importlib/_bootstrap is>"


class ProtocolNotes:
    """Installs the notes into the torch that is imported, and removes them again."""

    def __init__(self, adapter: Adapter) -> None:
        torch = sys.modules["torch"]
        self._adapter = adapter
        self._torch = torch
        self._is_compiling = torch.compiler.is_compiling
        self._scaler_class = torch.amp.GradScaler
        self._autocast_class = torch.amp.autocast
        self._torch_folder = os.path.dirname(torch.__file__) + os.sep
        self._autocast_lines: dict[tuple[CodeType, int], int] = {}
        self._scale_reads: dict[tuple[CodeType, int], int] = {}
        self._autocast_made_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._scaler_code = _codes(self._scaler_class, "step", "_maybe_opt_step")
        self._handles: list[Any] = []
        self._wrapped: list[tuple[type, str, WatchedMethod]] = []
        self._nesting = threading.local()

    def install(self) -> None:
        optimizer_module = sys.modules["torch.optim.optimizer"]
        self._handles = [
            optimizer_module.register_optimizer_step_pre_hook(self._optimizer_step_begins),
            optimizer_module.register_optimizer_step_post_hook(self._optimizer_step_ends),
        ]
        scheduler_class = sys.modules["torch.optim.lr_scheduler"].LRScheduler
        for watched_class in _with_subclasses(scheduler_class):
            self._watch(watched_class, "step", self._schedule_step)
        self._watch_future_subclasses(scheduler_class)
        self._watch(self._scaler_class, "get_scale", self._scale_read)
        self._watch(self._scaler_class, "__init__", self._scaler_made)
        self._watch(self._scaler_class, "load_state_dict", self._scaler_restored)
        self._watch(optimizer_module.Optimizer, "load_state_dict", self._optimizer_restored)
        self._watch(optimizer_module.Optimizer, "__init__", self._optimizer_made)
        for name in ("unscale_", "step", "update"):
            self._watch_failures(self._scaler_class, name)
        for name, note in (
            ("__init__", self._autocast_made),
            ("__enter__", self._autocast_entered),
            ("__exit__", self._autocast_left),
        ):
            self._watch(self._autocast_class, name, note)
        if os.environ.get("AMPSCOPE_BUDGET"):
            self._announce(self._scaler_class, "_unscale_grads_")
            self._announce(self._scaler_class, "update")
            self._adapter.note_cost(self._cost_of_a_note())

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        for owner, name, method in self._wrapped:
            if owner.__dict__.get(name) is method:
                setattr(owner, name, method.original)
        scheduler_class = sys.modules["torch.optim.lr_scheduler"].LRScheduler
        if getattr(scheduler_class.__dict__.get("__init_subclass__"), "_of_ampscope", False):
            del scheduler_class.__init_subclass__
        self._handles, self._wrapped = [], []

    # Optimizers

    def _optimizer_step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._is_compiling():
            self._note_optimizer_step(optimizer, begin=1)

    def _optimizer_step_ends(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._is_compiling():
            self._note_optimizer_step(optimizer, begin=0)

    def _note_optimizer_step(self, optimizer: Any, begin: int) -> None:
        try:
            self._adapter.note_optimizer_step(
                id(optimizer),
                type(optimizer).__name__.encode(),
                self._learning_rate(optimizer),
                int(_is_called_from(sys._getframe(2), self._scaler_code, _SCALER_SEARCH_DEPTH)),
                begin,
            )
        except Exception:
            pass  # an optimizer that is like no other; the ranges around its operators still tell the step

    def _learning_rate(self, optimizer: Any) -> float:
        rate = optimizer.param_groups[0]["lr"]
        if not isinstance(rate, self._torch.Tensor):
            return float(rate)
        # Read from memory: item() would run an operator inside the program's step, on a GPU with a synchronisation.
        if type(rate) is self._torch.Tensor and rate.device.type == "cpu" and rate.numel() == 1:
            kind = {self._torch.float32: ctypes.c_float, self._torch.float64: ctypes.c_double}.get(rate.dtype)
            if kind is not None:
                return kind.from_address(rate.data_ptr()).value
        return math.nan

    # Learning-rate schedules

    def _watch_future_subclasses(self, scheduler_class: Any) -> None:
        if "__init_subclass__" in scheduler_class.__dict__:
            return

        def __init_subclass__(cls: type, **kwargs: Any) -> None:
            super(scheduler_class, cls).__init_subclass__(**kwargs)
            self._watch(cls, "step", self._schedule_step)

        hook = classmethod(__init_subclass__)
        hook._of_ampscope = True  # type: ignore[attr-defined]
        scheduler_class.__init_subclass__ = hook

    def _schedule_step(self, schedule: Any, frame: FrameType | None) -> None:
        self._adapter.note_schedule_step(
            id(schedule),
            type(schedule).__name__.encode(),
            id(schedule.optimizer) if getattr(schedule, "optimizer", None) is not None else 0,
            int(_is_under_construction(schedule, frame)),
        )

    # Reads of the loss scale

    def _scale_read(self, scaler: Any, frame: FrameType | None) -> None:
        caller = frame.f_globals.get("__name__", "") if frame is not None else ""
        if frame is None or str(caller).startswith("torch."):  # torch reads it itself, for state_dict
            return
        key = (frame.f_code, frame.f_lasti)
        as_factor = self._scale_reads.get(key)
        if as_factor is None:
            as_factor = self._scale_reads[key] = int(use_as_factor(frame))
        self._adapter.note_scale_read(id(scaler), as_factor)

    # The scaler's life and its refusals

    def _scaler_made(self, scaler: Any, frame: FrameType | None) -> None:
        self._adapter.note_scaler_made(id(scaler))

    def _scaler_restored(self, scaler: Any, frame: FrameType | None) -> None:
        self._adapter.note_scaler_restored(id(scaler))

    def _optimizer_restored(self, optimizer: Any, frame: FrameType | None) -> None:
        if optimizer.state:  # that of an optimizer which never stepped restores nothing
            self._adapter.note_optimizer_restored(id(optimizer))

    def _optimizer_made(self, optimizer: Any, frame: FrameType | None) -> None:
        self._adapter.note_optimizer_made()

    def _scaler_refused(self, args: Any, error: BaseException) -> None:
        reason = _refusal(error)
        if reason:
            optimizer = args[0] if args else None
            self._adapter.note_scaler_refusal(
                id(optimizer) if optimizer is not None else 0,
                type(optimizer).__name__.encode() if optimizer is not None else b"",
                reason,
            )

    def _watch_failures(self, owner: type, name: str) -> None:
        original = owner.__dict__.get(name)
        if isinstance(original, WatchedMethod) or not hasattr(original, "__code__"):
            return
        is_compiling, refused, nesting = self._is_compiling, self._scaler_refused, self._nesting

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or getattr(nesting, "refusing", False):  # step calls unscale_; the outermost call tells
                return original(self, *args, **kwargs)
            nesting.refusing = True
            try:
                return original(self, *args, **kwargs)
            except Exception as error:
                try:
                    refused(args or tuple(kwargs.values()), error)
                except Exception:
                    pass  # an object that is not what its class says; the program gets its own exception
                _forget_wrapper(error)
                raise
            finally:
                nesting.refusing = False

        wrapper.__code__ = wrapper.__code__.replace(co_filename=_FILE_NOT_COUNTED)
        method = WatchedMethod(original, wrapper)
        setattr(owner, name, method)
        self._wrapped.append((owner, name, method))

    # With a budget

    def _announce(self, owner: type, name: str) -> None:
        """Says when a method begins and ends: its operators may be unwatched otherwise."""
        watched = owner.__dict__.get(name)
        original = watched.original if isinstance(watched, WatchedMethod) else watched
        if not hasattr(original, "__code__"):
            return
        inner = watched.wrapper if isinstance(watched, WatchedMethod) else original
        is_compiling, note = self._is_compiling, self._adapter.note_scaler_region()

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return inner(self, *args, **kwargs)
            note(1)
            try:
                return inner(self, *args, **kwargs)
            finally:
                note(0)

        wrapper.__code__ = wrapper.__code__.replace(co_filename=_FILE_NOT_COUNTED)
        method = WatchedMethod(original, wrapper)
        setattr(owner, name, method)
        self._wrapped.append((owner, name, method))

    def _cost_of_a_note(self) -> float:
        """Nanoseconds that a watched method takes longer than the method alone."""

        class Sample:
            def method(self) -> None:
                pass

        plain = Sample()
        # Nothing is restored under this identity; the note comes to its end without having done anything.
        watched = self._wrapper(Sample.method, lambda sample, frame: self._adapter.note_optimizer_restored(0))
        times: list[tuple[int, int]] = []
        for _ in range(5):
            begin = time.perf_counter_ns()
            for _ in range(100):
                plain.method()
            middle = time.perf_counter_ns()
            for _ in range(100):
                watched(plain)
            times.append((middle - begin, time.perf_counter_ns() - middle))
        return max(0, min(after for _, after in times) - min(before for before, _ in times)) / 100

    # Autocast objects

    def _autocast_made(self, autocast: Any, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code.co_filename.endswith(_AUTOCAST_CLASSES):
            frame = frame.f_back
        if frame is None or not autocast._enabled or autocast.device not in ("cpu", "cuda"):
            return
        if frame.f_code.co_filename.startswith(self._torch_folder):
            return  # torch makes them for its own ends: checkpointing, data parallel replicas
        key = (frame.f_code, frame.f_lasti)
        made = self._autocast_lines.get(key, -1)
        if made < 0:
            made = self._adapter.note_autocast(
                frame.f_code.co_filename.encode(errors="surrogateescape"),
                frame.f_lineno or 0,
                frame.f_code.co_name.encode(),
                autocast.device.encode(),
                str(autocast.fast_dtype).removeprefix("torch.").encode(),
            )
            self._autocast_lines[key] = made
        self._autocast_made_at[autocast] = made

    def _autocast_entered(self, autocast: Any, frame: FrameType | None) -> None:
        made = self._autocast_made_at.get(autocast)
        if made is not None and made >= 0:
            self._adapter.note_autocast_use(made)

    def _autocast_left(self, autocast: Any, frame: FrameType | None) -> None:
        if autocast in self._autocast_made_at:
            self._adapter.note_autocast_use(-1)

    # Wrapping

    def _watch(self, owner: type, name: str, note: Any) -> None:
        original = owner.__dict__.get(name)
        if isinstance(original, WatchedMethod) or not hasattr(original, "__code__"):
            return
        method = WatchedMethod(original, self._wrapper(original, note))
        setattr(owner, name, method)
        self._wrapped.append((owner, name, method))

    def _wrapper(self, original: Any, note: Any) -> Any:
        is_compiling, nesting = self._is_compiling, self._nesting

        @functools.wraps(original)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            # A schedule made of schedules, or a step that calls super().step(), is one step: the outermost.
            if is_compiling() or getattr(nesting, "inside", False):
                return original(self, *args, **kwargs)
            nesting.inside = True
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                _forget_wrapper(error)
                raise
            finally:
                nesting.inside = False
            try:
                note(self, sys._getframe(1))
            except Exception:
                pass  # an object that is not what its class says; the program's call has succeeded
            return result

        wrapper.__code__ = wrapper.__code__.replace(co_filename=_FILE_NOT_COUNTED)
        return wrapper


def _forget_wrapper(error: BaseException) -> None:
    """Takes the wrapper that calls this out of an exception's traceback. A bare raise adds no entry of its own."""
    entry = error.__traceback__
    if entry is not None and entry.tb_frame.f_code.co_filename == _FILE_NOT_COUNTED:
        error.__traceback__ = entry.tb_next


class WatchedMethod:
    """A method in a class's __dict__: instances get the wrapper, the class itself gives the original function.

    So inspect, pickle and explicit calls through the class see what they always saw.
    """

    def __init__(self, original: Any, wrapper: Any) -> None:
        self.original = original
        self.wrapper = wrapper
        functools.update_wrapper(self, original)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.original if instance is None else MethodType(self.wrapper, instance)

    def __reduce__(self) -> Any:
        # Pickling a class by value (cloudpickle) takes its __dict__ apart: copy() of a function is that function.
        import copy

        return copy.copy, (self.original,)


# What the scaler says when it refuses, and the flag of trace/model.h that stands for it.
_REFUSALS = (
    ("already been called on this optimizer", 1 << 20),
    ("step() has already been called", 1 << 21),
    ("is being called after step()", 1 << 22),
    ("fp16 gradients", 1 << 23),
    ("no inf checks were recorded for this optimizer", 1 << 24),
    ("no inf checks were recorded prior to update", 1 << 25),
    ("_scale is none", 1 << 26),
    ("closure", 1 << 27),
)


def _refusal(error: BaseException) -> int:
    text = str(error).lower()
    if not isinstance(error, (RuntimeError, AssertionError, ValueError, TypeError)):
        return 0
    return next((flag for words, flag in _REFUSALS if words in text), 0)


def _with_subclasses(base: type) -> list[type]:
    found = [base]
    for subclass in found:
        found += [other for other in subclass.__subclasses__() if other not in found]
    return found


def _codes(owner: type, *names: str) -> frozenset[CodeType]:
    functions = [getattr(owner, name, None) for name in names]
    return frozenset(function.__code__ for function in functions if hasattr(function, "__code__"))


def _is_called_from(frame: FrameType | None, codes: frozenset[CodeType], depth: int) -> bool:
    while frame is not None and depth > 0:
        if frame.f_code in codes:
            return True
        frame, depth = frame.f_back, depth - 1
    return False


def _is_under_construction(schedule: Any, frame: FrameType | None) -> bool:
    """Whether a schedule's own constructor is among the callers: its first step sets the initial learning rate."""
    for _ in range(_CONSTRUCTOR_SEARCH_DEPTH):
        if frame is None:
            return False
        name = frame.f_code.co_name
        if name == "_initial_step":
            return True
        if name == "__init__" and frame.f_code.co_argcount > 0:
            if frame.f_locals.get(frame.f_code.co_varnames[0]) is schedule:
                return True
        frame = frame.f_back
    return False
