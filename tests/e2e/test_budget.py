"""Runs with a budget: unchanged to the last bit, every step's gradients checked, and the cost told."""

from __future__ import annotations

import unittest
from pathlib import Path

from attach_case import AttachCase
from harness import COMMAND, PYTHON, execute

#: {STEPS} steps in fp16; the scale grows until a step is skipped, now and then.
TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=40)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
for step in range({STEPS}):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex(), scaler.get_scale(), flush=True)
print([p.detach().double().sum().item().hex() for p in model.parameters()])
"""

#: fp32, no scaler; in one step an infinity stands in a gradient of 1024, and the program takes it out again.
ONE_INFINITY = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 16), torch.randint(3, (64,))

for step in range(300):
    loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    if step == 217:
        model[0].weight.grad[3, 3] = float("inf")
        kept = [p.detach().clone() for p in model.parameters()]
    optimizer.step()
    if step == 217:
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), kept):
                parameter.copy_(value)
    print(step, loss.item().hex(), flush=True)
"""


class Budget(AttachCase):
    def test_run_is_unchanged_and_the_cost_is_told(self):
        steps = 600
        self.write("train.py", TRAIN.replace("{STEPS}", str(steps)))
        plain = self.unchanged(PYTHON, "train.py", AMPSCOPE_BUDGET="5").stdout
        report = self.assert_one_trace(steps)
        budget = report["run"]["budget"]
        self.assertEqual(5, budget["percent"])
        self.assertGreaterEqual(budget["operator_steps"], 3)
        self.assertLess(budget["operator_steps"], steps // 2, "steps were to be drawn")
        self.assertLess(budget["full_steps"], budget["operator_steps"] + 1)
        self.assertLess(budget["gradient_steps"], steps)
        self.assertGreater(budget["cost_percent"], 0)
        low, high = budget["cost_percent_interval"]
        self.assertLessEqual(low, budget["cost_percent"])
        self.assertGreaterEqual(high, budget["cost_percent"])
        # Skips are seen in every step, as is the scale.
        scales = [float(line.split()[2]) for line in plain.splitlines() if line[0].isdigit()]
        skipped = [step for step in range(1, steps) if scales[step] < scales[step - 1]]
        self.assertTrue(skipped, "the program was to skip steps")
        self.assertEqual(skipped, report["run"]["skipped_steps"])
        [scaler] = report["scalers"] if "scalers" in report else [report["scaler"]]
        self.assertEqual(scales[-1], scaler["timeline"][-1]["scale_after"])
        drawn = [row["gradient_zero_interval"] for row in report["parameters"]]
        self.assertTrue(all(interval and 0 <= interval[0] <= interval[1] <= 1 for interval in drawn), drawn)
        text = execute([COMMAND, "report", self.trace], self.folder).stdout
        self.assertRegex(text, r"cost \S+ % of a budget of 5 %")
        self.assertRegex(text, r"operators in \S+ of 600 steps \(the budget draws steps\)")

    def test_gradients_are_checked_in_every_step(self):
        self.write("train.py", ONE_INFINITY)
        self.unchanged(PYTHON, "train.py", AMPSCOPE_BUDGET="1")
        self.assertLess(self.report()["run"]["budget"]["operator_steps"], 150)
        self.assertIn("1 non-finite gradient", self.info())


#: Prints, for each step, how often Python was asked for anything.
COUNTS = """
import ctypes, os
import torch
from torch import nn

library = ctypes.CDLL(os.environ["ADAPTER"], mode=os.RTLD_LOCAL | os.RTLD_NOW)
library.ampscope_python_calls.restype = ctypes.c_int64
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
before = 0
for step in range(130):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    now = library.ampscope_python_calls()
    print(step, now - before)
    before = now
"""


class SteadyPath(AttachCase):
    def test_python_is_not_asked_once_sites_are_known(self):
        """Its lock is taken only with it."""
        self.write("count.py", COUNTS)
        [adapter] = Path(COMMAND).resolve().parent.parent.glob("lib/ampscope/libampscope_probe_torch*.so")
        for level in ("ops", "grads", "auto", "full"):
            done = self.watched(PYTHON, "count.py", AMPSCOPE_LEVEL=level, ADAPTER=str(adapter))
            self.assertEqual(0, done.status, done.stderr)
            calls = dict(map(int, line.split()) for line in done.stdout.splitlines())
            self.assertGreater(calls[0], 0, "sites are found in Python's frames")
            asked = {step: count for step, count in calls.items() if count and step >= 5 and step % 64 != 0}
            self.assertEqual({}, asked, level)
            # A look now and then, for what has changed without a sign.
            self.assertGreater(calls[64], 0)


if __name__ == "__main__":
    unittest.main()
