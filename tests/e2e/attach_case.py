"""What the tests of attaching share: a small training program and the ways to run it."""

from __future__ import annotations

import json
import textwrap
import unittest
from pathlib import Path

import harness

#: Twelve steps in fp16, one of them skipped. Tests put code before it, after it, or in the place of {EACH_STEP}.
TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**21)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex(), flush=True)
    {EACH_STEP}
"""


def training(before: str = "", each_step: str = "pass", after: str = "") -> str:
    body = TRAIN.replace("{EACH_STEP}", textwrap.indent(textwrap.dedent(each_step).strip(), "    ").strip())
    return textwrap.dedent(before).strip() + "\n" + body + "\n" + textwrap.dedent(after)


class AttachCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = harness.fresh_folder("attach." + self.id().rsplit(".", 1)[-1])
        self.traces = self.folder / "traces"
        self.traces.mkdir()
        self.trace = self.traces / "run.ampscope"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def watched(self, *command: str | Path, **changes: str | None) -> harness.Ended:
        return harness.execute_watched(list(command), self.trace, self.folder, **changes)

    def plain(self, *command: str | Path, **changes: str | None) -> harness.Ended:
        return harness.execute(list(command), self.folder, **changes)

    def unchanged(self, *command: str | Path, status: int = 0, **changes: str | None) -> harness.Ended:
        """Runs without and with ampscope: status and output must be the same."""
        plain = self.plain(*command, **changes)
        self.assertEqual(status, plain.status, plain.stderr)
        watched = self.watched(*command, **changes)
        self.assertEqual(status, watched.status, watched.stderr)
        self.assertEqual(plain.stdout, watched.stdout)
        return watched

    def names(self) -> list[str]:
        return sorted(path.name for path in self.traces.iterdir())

    def report(self) -> dict:
        return harness.report(*harness.traces_beside(self.trace))

    def info(self) -> str:
        done = harness.execute([harness.COMMAND, "info", self.trace], self.folder)
        self.assertEqual(0, done.status, done.stderr)
        return done.stdout

    def assert_one_trace(self, steps: int = 12) -> dict:
        self.assertEqual(["run.ampscope"], self.names())
        report = self.report()
        self.assertEqual(steps, report["run"]["steps"])
        self.assertIn(report["verdict"], ("clean", "info"), json.dumps(report["findings"], indent=1))
        return report
