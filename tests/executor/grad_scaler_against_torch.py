"""Plays random sequences of GradScaler calls with PyTorch's scaler and with the C++ one, and compares them bit for bit.

Usage: grad_scaler_against_torch.py SCALER_DRIVER

After every call the scale, the growth tracker, the settings, all parameters and all gradients must have the same bits,
a step must have been taken or skipped by both, and a refused call must be refused by both for the same reason.
"""

from __future__ import annotations

import json
import random
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import torch

SEQUENCES = 300
CALLS = 40

REASONS = {
    "bad_setting": "factor must be",
    "closure": "Closure use",
    "not_scaled": "_scale is None",
    "already_unscaled": "already been called on this optimizer",
    "unscale_after_step": "called after step()",
    "already_stepped": "step() has already been called",
    "fp16_gradients": "unscale FP16 gradients",
    "no_gradients": "No inf checks were recorded for this optimizer",
    "nothing_checked": "No inf checks were recorded prior to update",
    "bad_scale": "new_scale should be",
    "empty_state": "source state dict is empty",
}


def bits_of(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


class Writer:
    """Makes one script. Half of its calls form right iterations, the rest comes in any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.momentum = self.random.random() < 0.5
        self.script = {
            "scaler": self.settings(enabled=seed % 10 != 0),
            "optimizers": [self.optimizer() for _ in range(pick([1, 1, 2, 2, 3]))],
            "calls": [],
        }
        while len(self.script["calls"]) < CALLS:
            if self.random.random() < 0.6:
                self.iteration()
            else:
                self.anything()

    def settings(self, enabled: bool = True) -> dict:
        pick = self.random.choice
        return {
            "init_scale": pick([2.0**16, 2.0**16, 1.0, 3.7, 1e-3, 2.0**40, 2.0**120, 2.0**-140]),
            "growth_factor": pick([2.0, 2.0, 1.5, 1.0001]),
            "backoff_factor": pick([0.5, 0.5, 0.25, 0.9]),
            "growth_interval": pick([1, 2, 3, 5, 2000]),
            "enabled": enabled,
        }

    def optimizer(self) -> dict:
        parameters = [self.parameter() for _ in range(self.random.randint(1, 3))]
        sparse = any(parameter["sparse"] for parameter in parameters)
        # LibTorch's SGD and Python's round the momentum of 16-bit parameters differently; the scaler has no part in it.
        small = any(parameter["dtype"].endswith("16") for parameter in parameters)
        return {
            "lr": self.random.choice([0.1, 0.01]),
            "momentum": 0.9 if self.momentum and not sparse and not small else 0.0,
            "weight_decay": 0.0 if sparse else self.random.choice([0.0, 0.01]),
            "parameters": parameters,
        }

    def parameter(self) -> dict:
        sparse = self.random.random() < 0.15
        shape = [4, 2] if sparse else self.random.choice([[3], [2, 2], [1]])
        dtype = self.random.choices(["float32", "bfloat16", "float64", "float16"], [85, 7, 5, 3])[0]
        if sparse and dtype.endswith("16"):  # backward cannot add up sparse gradients of 16 bits
            dtype = "float32"
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        bits = [bits_of(self.random.gauss(0, 1)) for _ in range(count)]
        return {"shape": shape, "dtype": dtype, "bits": bits, "sparse": sparse}

    def inputs(self, optimizer: int) -> list:
        size = 2.0 ** self.random.choice([0, 0, 0, -30, -60, 20, 60, 110])
        spoiled = self.random.random() < 0.1
        inputs = []
        for parameter in self.script["optimizers"][optimizer]["parameters"]:
            if self.random.random() < 0.1:
                inputs.append(None)
                continue
            rows = [self.random.randrange(4) for _ in range(3)] if parameter["sparse"] else None
            count = 6 if rows else len(parameter["bits"])
            values = [bits_of(self.random.gauss(0, 1) * size) for _ in range(count)]
            if spoiled:
                value = self.random.choice([float("inf"), float("-inf"), float("nan")])
                values[self.random.randrange(count)] = bits_of(value)
            inputs.append({"bits": values, "rows": rows} if rows else {"bits": values})
        return inputs

    def call(self, name: str, **arguments) -> None:
        self.script["calls"].append({"call": name, **arguments})

    def backward(self, optimizers: list[int], how: str | None = None) -> None:
        losses = [{"optimizer": i, "inputs": self.inputs(i)} for i in optimizers]
        self.call("backward", losses=losses, how=how or self.random.choice(["each", "list"]))

    def any_optimizer(self) -> int:
        return self.random.randrange(len(self.script["optimizers"]))

    def iteration(self) -> None:
        chosen = [i for i in range(len(self.script["optimizers"])) if self.random.random() < 0.8]
        for i in chosen:
            self.call("zero_grad", optimizer=i)
        for _ in range(self.random.choice([1, 1, 2])):
            self.backward(chosen)
        for i in chosen:
            if self.random.random() < 0.4:
                self.call("unscale_", optimizer=i)
        for i in chosen:
            self.call("step", optimizer=i)
        self.call("update")

    def anything(self) -> None:
        self.random.choice(
            [
                lambda: self.call("unscale_", optimizer=self.any_optimizer()),
                lambda: self.call("step", optimizer=self.any_optimizer()),
                lambda: self.call("step_closure", optimizer=self.any_optimizer()),
                lambda: self.call("update"),
                lambda: self.call("zero_grad", optimizer=self.any_optimizer()),
                lambda: self.backward([self.any_optimizer()]),
                lambda: self.backward([self.any_optimizer()], "unscaled"),
                lambda: self.call("update_scale", scale=self.random.choice([1.0, 2.0**14, 12345.678])),
                self.update_tensor,
                lambda: self.call("set_growth_factor", value=self.random.choice([2.0, 3.0, 1.25])),
                lambda: self.call("set_backoff_factor", value=self.random.choice([0.5, 0.125])),
                lambda: self.call("set_growth_interval", value=self.random.choice([1, 2, 7])),
                lambda: self.call("restore", scaler=self.settings(), scale_first=self.random.random() < 0.5),
                lambda: self.call("load_empty"),
                lambda: self.call(
                    "construct",
                    scaler=self.settings()
                    | self.random.choice(
                        [{"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"growth_factor": 0.5, "enabled": False}, {}]
                    ),
                ),
            ]
        )()

    def update_tensor(self) -> None:
        values = self.random.choice([512.0, 512.0, [1.0, 2.0]])
        self.call("update_tensor", values=values, requires_grad=self.random.random() < 0.3)


def tensor_from_bits(bits: list[int], shape: list[int]) -> torch.Tensor:
    return torch.tensor(bits, dtype=torch.uint32).view(torch.float32).reshape(shape).clone()


def tensor_bits(tensor: torch.Tensor | None) -> list[int] | None:
    if tensor is None:
        return None
    dense = tensor._values() if tensor.is_sparse else tensor
    words = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dense.element_size()]
    return dense.detach().contiguous().flatten().view(words).tolist()


def double_bits(value: float) -> str:
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:x}"


class Player:
    """The same as the driver's, with PyTorch's scaler and optimizer."""

    def __init__(self, script: dict) -> None:
        self.scaler = torch.amp.GradScaler("cpu", **script["scaler"])
        self.steps = 0
        self.optimizers = []
        for description in script["optimizers"]:
            parameters = [
                tensor_from_bits(p["bits"], p["shape"]).to(getattr(torch, p["dtype"])).requires_grad_()
                for p in description["parameters"]
            ]
            optimizer = torch.optim.SGD(
                parameters, description["lr"], description["momentum"], weight_decay=description["weight_decay"]
            )
            optimizer.register_step_post_hook(self.count_step)
            self.optimizers.append(optimizer)

    def count_step(self, *_) -> None:
        self.steps += 1

    @staticmethod
    def parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        return [p for group in optimizer.param_groups for p in group["params"]]

    def play(self, call: dict) -> dict:
        before = self.steps
        error = None
        try:
            arguments = {key: value for key, value in call.items() if key != "call"}
            getattr(self, "do_" + call["call"])(**arguments)
        except (AssertionError, RuntimeError, ValueError) as exception:
            error = next((kind for kind, words in REASONS.items() if words in str(exception)), None)
            if error is None:
                raise
        record = {
            "stepped": self.steps > before,
            "error": error,
            "scale": double_bits(self.scaler.get_scale()),
            "tracker": self.scaler._get_growth_tracker(),
        }
        if self.scaler.is_enabled():
            record["settings"] = [
                double_bits(self.scaler.get_growth_factor()),
                double_bits(self.scaler.get_backoff_factor()),
                self.scaler.get_growth_interval(),
            ]
        record["tensors"] = [
            tensor_bits(tensor)
            for optimizer in self.optimizers
            for parameter in self.parameters(optimizer)
            for tensor in (parameter, parameter.grad)
        ]
        return record

    def do_zero_grad(self, optimizer: int) -> None:
        self.optimizers[optimizer].zero_grad()

    def loss(self, optimizer: int, inputs: list) -> torch.Tensor | None:
        loss = None
        for parameter, given in zip(self.parameters(self.optimizers[optimizer]), inputs, strict=True):
            if given is None:
                continue
            used = parameter
            if given.get("rows"):
                used = torch.nn.functional.embedding(torch.tensor(given["rows"]), parameter, sparse=True)
            part = (used * tensor_from_bits(given["bits"], list(used.shape)).to(used.dtype)).sum()
            loss = part if loss is None else loss + part.to(loss.dtype)
        return loss

    def do_backward(self, losses: list, how: str) -> None:
        values = [value for value in (self.loss(**description) for description in losses) if value is not None]
        if how == "list":
            values = self.scaler.scale(values)
        elif how == "each":
            values = [self.scaler.scale(value) for value in values]
        for value in values:
            value.backward()

    def do_unscale_(self, optimizer: int) -> None:
        self.scaler.unscale_(self.optimizers[optimizer])

    def do_step(self, optimizer: int) -> None:
        self.scaler.step(self.optimizers[optimizer])

    def do_step_closure(self, optimizer: int) -> None:
        self.scaler.step(self.optimizers[optimizer], closure=lambda: torch.ones(()))

    def do_update(self) -> None:
        self.scaler.update()

    def do_update_scale(self, scale: float) -> None:
        self.scaler.update(scale)

    def do_update_tensor(self, values: float | list[float], requires_grad: bool) -> None:
        self.scaler.update(torch.tensor(values, requires_grad=requires_grad))

    def do_set_growth_factor(self, value: float) -> None:
        self.scaler.set_growth_factor(value)

    def do_set_backoff_factor(self, value: float) -> None:
        self.scaler.set_backoff_factor(value)

    def do_set_growth_interval(self, value: int) -> None:
        self.scaler.set_growth_interval(value)

    def do_restore(self, scaler: dict, scale_first: bool) -> None:
        state = self.scaler.state_dict()
        self.scaler = torch.amp.GradScaler("cpu", **scaler)
        if scale_first:
            self.scaler.scale(torch.ones(()))
        self.scaler.load_state_dict(state)

    def do_load_empty(self) -> None:
        self.scaler.load_state_dict({})

    def do_construct(self, scaler: dict) -> None:
        torch.amp.GradScaler("cpu", **scaler)


def main() -> int:
    torch.set_num_threads(1)
    scripts = [Writer(seed).script for seed in range(SEQUENCES)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scripts.json"
        path.write_text(json.dumps(scripts))
        output = subprocess.run([sys.argv[1], str(path)], check=True, capture_output=True, text=True).stdout
    ours = [json.loads(line) for line in output.splitlines()]
    if len(ours) != SEQUENCES:
        print(f"the driver played {len(ours)} of {SEQUENCES} scripts")
        return 1

    seen = Counter()
    for number, (script, records) in enumerate(zip(scripts, ours, strict=True)):
        player = Player(script)
        for place, (call, record) in enumerate(zip(script["calls"], records, strict=True)):
            expected = player.play(call)
            seen[expected["error"]] += 1
            if call["call"] == "step" and expected["error"] is None:
                seen["step taken" if expected["stepped"] else "step skipped"] += 1
            if record != expected:
                print(f"sequence {number}, call {place}: {call}")
                for key, value in expected.items():
                    if record.get(key) != value:
                        print(f"  {key}: torch {value}, C++ {record.get(key)}")
                return 1
    print(
        f"{SEQUENCES} sequences agree: "
        + ", ".join(f"{key or 'accepted'} {n}" for key, n in sorted(seen.items(), key=lambda item: str(item[0])))
    )

    # A comparison in which something never came up would prove nothing about it.
    wanted = {*REASONS, "step taken", "step skipped"}
    if missing := wanted - seen.keys():
        print(f"never came up: {sorted(missing)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
