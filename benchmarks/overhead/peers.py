"""What else people use to look at such runs, as contexts around some steps."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import io
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Nothing(TorchDispatchMode):
    """A dispatch mode that only hands calls on: the least that any tool of its kind costs."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Values(TorchDispatchMode):
    """What ampscope's full level computes of every floating output, with torch's own operators."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for value in tree_leaves(result):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0:
                self.statistics(value.detach())
        return result

    @staticmethod
    def statistics(value: torch.Tensor) -> None:
        wide = value.float()
        magnitude = wide.abs()
        wide.isnan().sum().item()
        wide.isinf().sum().item()
        (wide == 0).sum().item()
        wide.aminmax()
        wide.square().sum().item()
        exponents = torch.frexp(magnitude).exponent
        torch.bincount((exponents.flatten() + 160).clamp_(0, 319), minlength=320)


@contextmanager
def gradient_histograms() -> Iterator[None]:
    """torch.histc of every gradient in every step, before the optimizer sees it."""

    def look(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    torch.histc(parameter.grad.float(), bins=64)

    handle = register_optimizer_step_pre_hook(look)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def empty_callback() -> Iterator[None]:
    """What torch itself takes to announce its operators to a callback that does nothing."""
    library = ctypes.CDLL(os.environ["AMPSCOPE_EMPTY_CALLBACK"])
    library.empty_callback_add()
    try:
        yield
    finally:
        library.empty_callback_remove()


@contextmanager
def hugging_face(model: torch.nn.Module) -> Iterator[None]:
    """transformers' DebugUnderflowOverflow, which has no way to be taken off again: its hooks are."""
    from transformers.debug_utils import DebugUnderflowOverflow

    before = {module: module._forward_hooks.copy() for module in model.modules()}
    DebugUnderflowOverflow(model)
    try:
        yield
    finally:
        for module, hooks in before.items():
            module._forward_hooks = hooks


def profiler() -> AbstractContextManager[Any]:
    return profile(activities=[ProfilerActivity.CPU], record_shapes=True)


#: Contexts around some steps of a model.
PEERS: dict[str, Callable[[torch.nn.Module], AbstractContextManager[Any]]] = {
    "none": lambda model: nullcontext(),
    "none again": lambda model: nullcontext(),
    "empty callback": lambda model: empty_callback(),
    "torch.profiler, shapes": lambda model: profiler(),
    "detect_anomaly": lambda model: torch.autograd.detect_anomaly(check_nan=True),
    "DebugUnderflowOverflow": hugging_face,
    "dispatch mode, nothing": lambda model: Nothing(),
    "dispatch mode, same values": lambda model: Values(),
    "histc of gradients": lambda model: gradient_histograms(),
}


class Msprobe:
    """Statistics of msprobe (mindstudio-probe), which patches torch for good and so has a process of its own."""

    def __init__(self, level: str, folder: str) -> None:
        from msprobe.pytorch import PrecisionDebugger

        config = os.path.join(folder, "msprobe.json")
        statistics = {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics"}
        settings = {"task": "statistics", "dump_path": os.path.join(folder, "msprobe"), "rank": [], "step": []}
        with open(config, "w") as file:
            json.dump(settings | {"level": level, "statistics": statistics}, file)
        self.debugger = PrecisionDebugger(config_path=config)

    def step(self, model: torch.nn.Module, step: Callable[[], None]) -> None:
        with contextlib.redirect_stdout(io.StringIO()):  # a line for every step
            self.debugger.start(model=model)
            step()
            self.debugger.stop()
            self.debugger.step()


def missing() -> dict[str, str]:
    """Peers that cannot be measured here, and why."""
    absent = {}
    if not os.environ.get("AMPSCOPE_EMPTY_CALLBACK"):
        absent["empty callback"] = "benchmarks/ampscope_empty_callback is not built"
    for peer, package, install in (
        ("DebugUnderflowOverflow", "transformers", "transformers"),
        ("msprobe, statistics L1", "msprobe", "mindstudio-probe"),
    ):
        if importlib.util.find_spec(package) is None:
            absent[peer] = f"pip install {install}"
    return absent


warnings.filterwarnings("ignore")
