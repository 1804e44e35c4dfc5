"""What else people use to look at such runs, as contexts around some steps."""

from __future__ import annotations

from collections.abc import Iterator
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


def profiler() -> AbstractContextManager[Any]:
    return profile(activities=[ProfilerActivity.CPU], record_shapes=True)


PEERS = {
    "none": nullcontext,
    "none again": nullcontext,
    "torch.profiler, shapes": profiler,
    "detect_anomaly": lambda: torch.autograd.detect_anomaly(check_nan=True),
    "dispatch mode, nothing": Nothing,
    "dispatch mode, same values": Values,
    "histc of gradients": gradient_histograms,
}
