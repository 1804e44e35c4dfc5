"""What a program does with what it gives to a call or gets from one, as far as its own code says."""

from __future__ import annotations

import enum
import functools
from types import CodeType, FrameType
from typing import Any

_FACTOR_OPERATORS = ("*", "/", "*=", "/=")
# Before Python 3.11 each operator had an instruction of its own.
_FACTOR_INSTRUCTIONS = (
    "BINARY_TRUE_DIVIDE",
    "BINARY_MULTIPLY",
    "INPLACE_TRUE_DIVIDE",
    "INPLACE_MULTIPLY",
)
# How many instructions after a name is loaded it may meet its operator: `scale * norm.item()` loads and calls between.
_REACH = 6
_BETWEEN = ("LOAD_", "CALL", "PRECALL", "PUSH_NULL", "CACHE", "EXTENDED_ARG")
# How many functions a result is followed out of.
_CALLERS = 2


class Factor(enum.IntEnum):
    """What becomes of a result. The adapter knows these numbers."""

    NO = 0
    YES = 1
    #: All that multiplies or divides with it stands above it, so it meets the result in the next iteration.
    NEXT_ITERATION = 2


def use_as_factor(frame: FrameType, depth: int = 0) -> Factor:
    """Whether the result of the call that `frame` is at is multiplied or divided with, there or under its name.

    The name is looked for in the same function, and one of an object's attributes or a constant key in the other
    methods of its class. What the function returns is looked for in its caller.
    """
    instructions = _instructions(frame.f_code)
    # Python points at the call or at the cache entries behind it.
    at = sum(each.offset <= frame.f_lasti for each in instructions) - 1
    if at < 0:
        return Factor.NO
    for position in range(at + 1, min(at + 1 + _REACH, len(instructions))):
        instruction = instructions[position]
        if _is_factor_operator(instruction):
            return Factor.YES
        if instruction.opname == "STORE_SUBSCR":
            return _use_of(frame, instructions, position, _keys(instructions[position - 1]), whole_class=True)
        if instruction.opname.startswith("STORE_"):
            whole_class = instruction.opname == "STORE_ATTR"
            return _use_of(frame, instructions, position, _names(instruction), whole_class)
        if instruction.opname == "RETURN_VALUE":
            caller = frame.f_back
            return use_as_factor(caller, depth + 1) if caller is not None and depth < _CALLERS else Factor.NO
        if not instruction.opname.startswith(("LOAD_", "UNARY_", "CACHE", "RESUME", "COPY", "PRECALL", "EXTENDED_ARG")):
            return Factor.NO
    return Factor.NO


# What is no tensor and has a dtype as well: settings.
_SETTINGS = ("self", "cls", "args", "cfg", "conf", "config", "hparams", "opt", "opts", "options", "settings")


def takes_dtype_of_tensor(frame: FrameType) -> bool:
    """Whether the call that `frame` is at is given the dtype of another tensor: `weight.to(x.dtype)`.

    That dtype may have been given a name in the same function. Only names are looked at: reading a local variable's
    value would keep its tensor alive.
    """
    code = frame.f_code
    if "dtype" not in code.co_names:
        return False
    instructions = _instructions(code)
    at = sum(each.offset <= frame.f_lasti for each in instructions) - 1
    # Behind the dtype may stand options: copy=True.
    passed = ("CALL", "PRECALL", "KW_NAMES", "LOAD_CONST", "CACHE", "EXTENDED_ARG")
    while at >= 0 and instructions[at].opname.startswith(passed):
        at -= 1
    if at < 0:
        return False
    given = instructions[at]
    if _is_dtype_of_tensor(instructions, at):
        return True
    if not given.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")):
        return False
    name = _names(given)[-1]
    return any(
        each.opname.startswith("STORE_") and name in _names(each) and _is_dtype_of_tensor(instructions, position - 1)
        for position, each in enumerate(instructions)
    )


@functools.lru_cache(maxsize=64)
def _instructions(code: CodeType) -> list[Any]:
    import dis  # torch has imported it

    return list(dis.get_instructions(code))


def _is_dtype_of_tensor(instructions: list[Any], at: int) -> bool:
    if at < 1 or not (instructions[at].opname == "LOAD_ATTR" and instructions[at].argval == "dtype"):
        return False
    owner = instructions[at - 1]
    return owner.opname.startswith("LOAD_") and _names(owner)[-1] not in _SETTINGS


def _use_of(
    frame: FrameType, instructions: list[Any], stored_at: int, names: tuple[str, ...], whole_class: bool
) -> Factor:
    here = [use for name in names for use in _uses_as_factor(instructions, name)]
    if any(use > stored_at for use in here):
        return Factor.YES
    code = frame.f_code
    if whole_class and code.co_argcount:
        owner = frame.f_locals.get(code.co_varnames[0])
        for function in vars(type(owner)).values():
            other = getattr(function, "__code__", None)
            if isinstance(other, CodeType) and other is not code:
                if any(_uses_as_factor(_instructions(other), name) for name in names):
                    return Factor.YES
    return Factor.NEXT_ITERATION if here else Factor.NO


def _uses_as_factor(instructions: list[Any], name: str) -> list[int]:
    """Where in the code the name is loaded to be multiplied or divided with."""
    uses = []
    for position, instruction in enumerate(instructions):
        if not instruction.opname.startswith("LOAD_") or name not in _names(instruction) + _keys(instruction):
            continue
        for later in instructions[position + 1 : position + 1 + _REACH]:
            if _is_factor_operator(later):
                uses.append(position)
                break
            if not later.opname.startswith(_BETWEEN) and not _is_subscription(later):
                break
    return uses


def _is_factor_operator(instruction: Any) -> bool:
    if instruction.opname == "BINARY_OP":
        return instruction.argrepr in _FACTOR_OPERATORS
    return instruction.opname in _FACTOR_INSTRUCTIONS


def _is_subscription(instruction: Any) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or instruction.argrepr == "[]"


def _keys(instruction: Any) -> tuple[str, ...]:
    """The constant that is loaded, as it is written: no name looks like that."""
    return (repr(instruction.argval),) if instruction.opname == "LOAD_CONST" else ()


def _names(instruction: Any) -> tuple[str, ...]:
    """Python 3.13 loads and stores two names in one instruction."""
    if instruction.opname == "LOAD_CONST":
        return ()
    value = instruction.argval
    return value if isinstance(value, tuple) else (str(value),)
