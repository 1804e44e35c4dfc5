"""Values that are looked at on a device arrive late: what is recorded of them is what is recorded in host memory."""

from __future__ import annotations

import json
import os
import unittest

from attach_case import AttachCase
from harness import PYTHON

TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
for step in range(14):
    x = inputs.clone()
    with torch.autocast("cpu", dtype=torch.float16):
        y = model(x)
        if step == FAULT:
            y = torch.exp(y.float() * 0 + 90)  # <- overflows
        loss = nn.functional.cross_entropy(y, targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
"""
DEVICE = {"AMPSCOPE_DEVICE_LIBRARY": os.environ.get("AMPSCOPE_LATE_DEVICE", "")}


class DeviceTest(AttachCase):
    def both(self, fault: int) -> tuple[dict, dict]:
        """The report of the program with values in host memory, and through a device."""
        self.write("train.py", TRAIN.replace("FAULT", str(fault)))
        here = self.unchanged(PYTHON, "train.py")
        report = self.report()
        self.trace.unlink()
        there = self.watched(PYTHON, "train.py", **DEVICE)
        self.assertEqual(here.stdout, there.stdout)
        return report, self.report()

    def test_gradients_and_the_scaler(self):
        here, there = self.both(fault=-1)
        self.assertEqual(0, there["run"]["dropped"])
        for one, other in zip(here["parameters"], there["parameters"], strict=True):
            self.assertEqual(one["name"], other["name"])
            self.assertEqual(json.dumps(one["gradients"]), json.dumps(other["gradients"]))
        self.assertEqual(json.dumps(here["scaler"]["timeline"]), json.dumps(there["scaler"]["timeline"]))
        of = {row["site"]: row["absmax"] for row in there["ops"]}
        for row in here["ops"]:
            self.assertEqual(row["absmax"], of[row["site"]], row["op"])

    def test_origin_of_an_overflow(self):
        here, there = self.both(fault=9)
        self.assertEqual(here["run"]["skipped_steps"], there["run"]["skipped_steps"])
        self.assertEqual(here["verdict"], there["verdict"])
        [first] = [row for row in there["nonfinite"] if row["kind"] == "producer"][:1]
        self.assertEqual(9, first["step"])
        self.assertEqual("aten::exp", first["op"])


if __name__ == "__main__":
    unittest.main()
