"""Tells which line of the user's program runs an operator.

Called by the probe, from C, for an operator whose place it does not know yet: once a place, not once a call. Nothing in
here may call torch, and nothing may keep a frame or a tensor.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from . import _session
from ._program_text import takes_dtype_of_tensor

Line = tuple[str, int, str]

MODULE_CALL_CODE = torch.nn.Module._call_impl.__code__

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OWN = os.path.dirname(__file__) + os.sep
_AUTOCAST_FILE = os.path.join(_TORCH, "amp", "autocast_mode.py")
_TRACE_FILE = os.path.join(_TORCH, "jit", "_trace.py")
_AMP_DECORATORS = {"decorate_fwd": "custom_fwd", "decorate_bwd": "custom_bwd"}
_STACK_LINES = 8
_DEPTH = 400

# Functions of torch that mean something to the protocol, by file (under torch/) and function name. The arguments are
# local variables of that function that are worth keeping.
_APIS: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("nn/utils/clip_grad.py", "clip_grad_norm_"): ("clip_grad_norm_", ("max_norm", "norm_type")),
    ("nn/utils/clip_grad.py", "_clip_grads_with_norm_"): ("clip_grad_norm_", ("max_norm",)),
    ("nn/utils/clip_grad.py", "clip_grads_with_norm_"): ("clip_grad_norm_", ("max_norm",)),
    ("nn/utils/clip_grad.py", "_get_total_norm"): ("get_total_norm", ("norm_type",)),
    ("nn/utils/clip_grad.py", "get_total_norm"): ("get_total_norm", ("norm_type",)),
    ("nn/utils/clip_grad.py", "clip_grad_value_"): ("clip_grad_value_", ("clip_value",)),
    ("amp/grad_scaler.py", "scale"): ("GradScaler.scale", ()),
    ("amp/grad_scaler.py", "unscale_"): ("GradScaler.unscale_", ()),
    ("amp/grad_scaler.py", "step"): ("GradScaler.step", ()),
    ("amp/grad_scaler.py", "update"): ("GradScaler.update", ("new_scale",)),
    ("amp/grad_scaler.py", "get_scale"): ("GradScaler.get_scale", ()),
    ("amp/autocast_mode.py", "decorate_fwd"): ("custom_fwd", ()),
    ("amp/autocast_mode.py", "decorate_bwd"): ("custom_bwd", ()),
    ("nn/modules/module.py", "half"): ("Module.half", ()),
    ("nn/modules/module.py", "bfloat16"): ("Module.bfloat16", ()),
    ("nn/modules/module.py", "float"): ("Module.float", ()),
    ("nn/modules/module.py", "double"): ("Module.double", ()),
    ("nn/modules/module.py", "to"): ("Module.to", ()),
    ("nn/modules/module.py", "load_state_dict"): ("Module.load_state_dict", ()),
    ("utils/checkpoint.py", "checkpoint"): ("checkpoint", ()),
    ("utils/checkpoint.py", "recompute_fn"): ("checkpoint", ()),
    ("autograd/__init__.py", "grad"): ("autograd.grad", ()),
    ("autograd/__init__.py", "backward"): ("backward", ()),
    ("_tensor.py", "backward"): ("backward", ()),
    ("optim/swa_utils.py", "update_parameters"): ("AveragedModel.update_parameters", ()),
    ("jit/_trace.py", "trace"): ("jit.trace", ()),
    ("distributed/optim/zero_redundancy_optimizer.py", "step"): ("ZeroRedundancyOptimizer.step", ()),
}


def _hide_from_compiler(*functions: Callable[..., Any]) -> None:
    """Keeps torch.compile away, which looks at every Python frame that begins while a compiled function runs."""
    try:
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameAction.SKIP
        strategy = eval_frame._FrameExecStrategy(skip, skip)  # of the frame itself and of all it calls
        for function in functions:
            eval_frame.set_code_exec_strategy(function.__code__, strategy)
    except (ImportError, AttributeError):  # a torch that compiles otherwise: it may warn once, nothing else
        pass


class _Names:
    """Dotted names of the modules below a root, and a note of its parameters to the probe."""

    def __init__(self, root: torch.nn.Module) -> None:
        self.root = weakref.ref(root)
        self.paths: dict[int, str] = {}
        self.refresh(root)

    def refresh(self, root: torch.nn.Module) -> None:
        self.paths = {id(module): path for path, module in root.named_modules(remove_duplicate=True)}
        _note_parameters(root)


_roots: dict[int, _Names] = {}


def _note_parameters(root: torch.nn.Module) -> None:
    adapter = _session.adapter()
    if adapter is None:
        return
    seen: set[int] = set()
    for module_path, module in root.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            try:
                address = parameter.data_ptr()
            except RuntimeError:  # a parameter without memory of its own (fake, meta, a wrapper subclass)
                continue
            full_name = f"{module_path}.{name}" if module_path else name
            adapter.note_parameter(
                parameter._cdata, address, full_name.encode(), module_path.encode(), type(module).__name__.encode()
            )


def _module_path(chain: list[torch.nn.Module]) -> str:
    """`chain` is outermost first."""
    root, leaf = chain[0], chain[-1]
    names = _roots.get(id(root))
    if names is None or names.root() is not root:
        names = _roots[id(root)] = _Names(root)
    path = names.paths.get(id(leaf))
    if path is None:
        # The module was added after the first call.
        names.refresh(root)
        path = names.paths.get(id(leaf))
    return type(leaf).__name__ if path is None else path


def _local(frame: FrameType, name: str) -> Any:
    # f_locals of a function of torch only: reading it for a frame of the user's would keep their tensors alive (3.12
    # and older put the values into a dictionary that lives as long as the frame).
    return frame.f_locals.get(name)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _is_library(filename: str) -> bool:
    return filename.startswith((_TORCH, _OWN, "<frozen", "<ampscope"))


def describe() -> tuple[Line, list[Line], bool, str, str, str, list[tuple[str, float]]]:
    """The place of the code that called the operator: (line, outer lines, has module, path, class, api, arguments).

    Of a call of the user's own, `dtype_of_tensor` among the arguments says that it was given another tensor's dtype.
    """
    frame: FrameType | None = sys._getframe(1)
    source: Line = ("", 0, "")
    stack: list[Line] = []
    modules: list[torch.nn.Module] = []
    api = ""
    arguments: list[tuple[str, float]] = []
    tracing = False
    depth = 0
    while frame is not None and depth < _DEPTH:
        code = frame.f_code
        filename = code.co_filename
        if _is_library(filename):
            if code is MODULE_CALL_CODE:
                module = _local(frame, "self")
                if isinstance(module, torch.nn.Module):
                    modules.append(module)
            elif source[0] and filename == _TRACE_FILE:
                tracing = True
            elif source[0] and not api and not modules and code.co_name in _AMP_DECORATORS:
                # Whether an autograd.Function takes care of autocast shows only outside its own lines.
                if filename == _AUTOCAST_FILE:
                    api = _AMP_DECORATORS[code.co_name]
            elif not source[0] and filename.startswith(_TORCH):
                known = _APIS.get((filename[len(_TORCH) :], code.co_name))
                # The outermost function of torch that the user's line called gives the name; arguments may come from
                # one further in.
                if known is not None:
                    api = known[0]
                    for name in known[1]:
                        value = _number(_local(frame, name))
                        if value is not None and all(name != other for other, _ in arguments):
                            arguments.append((name, value))
        elif filename != __file__:
            line = (filename, frame.f_lineno or 0, code.co_name)
            if not source[0]:
                source = line
                if not api and takes_dtype_of_tensor(frame):
                    arguments.append(("dtype_of_tensor", 1.0))
            elif tracing:
                # What torch.jit.trace records belongs to its call; the module tells where inside.
                source, stack, api, tracing = line, [], "jit.trace", False
            elif len(stack) < _STACK_LINES:
                stack.append(line)
        frame = frame.f_back
        depth += 1
    if not modules:
        return source, stack, False, "", "", api, arguments
    modules.reverse()
    return source, stack, True, _module_path(modules), type(modules[-1]).__name__, api, arguments


def scaler_call() -> tuple[int, int, str, str]:
    """Identity and class of the GradScaler at work here, and of the optimizer it works on; zeros if unknown."""
    frame: FrameType | None = sys._getframe(1)
    scaler: Any = None
    optimizer: Any = None
    depth = 0
    while frame is not None and depth < 40:
        if frame.f_code.co_filename.endswith("grad_scaler.py"):
            scaler = scaler if scaler is not None else _local(frame, "self")
            optimizer = optimizer if optimizer is not None else _local(frame, "optimizer")
        elif scaler is not None:
            break
        frame = frame.f_back
        depth += 1
    return (
        id(scaler) if scaler is not None else 0,
        id(optimizer) if optimizer is not None else 0,
        f"{type(scaler).__module__}.{type(scaler).__qualname__}" if scaler is not None else "",
        type(optimizer).__name__ if optimizer is not None else "",
    )


_hide_from_compiler(describe, scaler_call)
