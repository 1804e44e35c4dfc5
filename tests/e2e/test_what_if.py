"""What `ampscope tune` predicts for other settings of the scaler is what happens with them."""

from __future__ import annotations

import json
import unittest

import harness
from attach_case import AttachCase
from harness import PYTHON

#: Steps whose gradients do not depend on the scaler: nothing is learnt, batches differ, every 37th is five times as
#: large.
PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr={rate})
scaler = torch.amp.GradScaler("cpu", {settings})
{restored}
generator = torch.Generator().manual_seed(1)
skips = 0
for step in range({steps}):
    inputs = torch.randn(32, 16, generator=generator)
    targets = torch.randint(4, (32,), generator=generator)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs).float(), targets) * (5 if step % 37 == 5 else 1)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    before = scaler.get_scale()
    scaler.update()
    skips += scaler.get_scale() < before
    if scaler.get_scale() > {ceiling}:
        scaler.update({ceiling})
print(skips, scaler.get_scale())
"""


class WhatIfTest(AttachCase):
    def train(
        self, rate: float, settings: str, steps: int = 400, ceiling: float = 2.0**100, restored: str = ""
    ) -> tuple[int, float]:
        """Skips and final scale, as the program itself counts them."""
        for trace in self.traces.iterdir():
            trace.unlink()
        self.write(
            "train.py", PROGRAM.format(rate=rate, settings=settings, steps=steps, ceiling=ceiling, restored=restored)
        )
        watched = self.watched(PYTHON, "train.py")
        self.assertEqual(0, watched.status, watched.stderr)
        skips, scale = watched.stdout.split()
        return int(skips), float(scale)

    def tune(self, *question: str, left_alone: bool = True) -> dict:
        ended = harness.execute([harness.COMMAND, "tune", self.trace, "--format", "json", *question], self.folder)
        self.assertEqual(0, ended.status, ended.stderr)
        (scaler,) = json.loads(ended.stdout)["scalers"]
        self.assertIsNone(scaler["not_tuned_because"])
        self.assertEqual(left_alone, not scaler["disagreements"])
        return scaler

    def test_exact_where_gradients_do_not_depend_on_it(self):
        self.train(0.0, "init_scale=1024.0")
        questions = {
            "init_scale=2.0**24, growth_interval=20": ["--init-scale", str(2**24), "--growth-interval", "20"],
            "growth_factor=1.5, growth_interval=50": ["--growth-factor", "1.5", "--growth-interval", "50"],
        }
        predicted = {}
        for settings, question in questions.items():
            start = [] if "--init-scale" in question else ["--init-scale", "65536"]
            predicted[settings] = self.tune(*question, *start)["asked"]
        for settings, asked in predicted.items():
            skips, scale = self.train(0.0, settings)
            self.assertGreater(skips, 2)
            self.assertEqual((skips, scale), (asked["skips"], asked["final_scale"]), settings)
            self.assertEqual(skips, self.tune()["today"]["skips"])

    def test_under_a_ceiling_that_the_program_keeps(self):
        self.train(0.0, "init_scale=4096.0, growth_interval=5", ceiling=131072.0)
        tuned = self.tune("--growth-factor", "4", "--growth-interval", "3", left_alone=False)
        self.assertEqual(400, tuned["updates"])
        skips, scale = self.train(0.0, "init_scale=4096.0, growth_factor=4.0, growth_interval=3", ceiling=131072.0)
        self.assertEqual((skips, scale), (tuned["asked"]["skips"], tuned["asked"]["final_scale"]))
        free = self.train(0.0, "init_scale=4096.0, growth_factor=4.0, growth_interval=3")
        self.assertGreater(free[0], skips)

    def test_a_scaler_restored_from_a_checkpoint(self):
        restored = (
            "state = scaler.state_dict()\n"
            "state.update(scale=2.0**21, growth_interval=300, _growth_tracker=250)\n"
            "scaler.load_state_dict(state)"
        )
        skips, scale = self.train(0.0, "init_scale=1024.0", restored=restored)
        tuned = self.tune()
        self.assertTrue(tuned["restored"])
        self.assertEqual((skips, scale), (tuned["today"]["skips"], tuned["today"]["final_scale"]))
        self.assertTrue(tuned["changed"])
        self.assertIn("scaler.load_state_dict(state)", tuned["code"]["python"])
        # What it says to paste does what it says.
        better = restored.replace("scaler.load_state_dict(state)", tuned["code"]["python"].replace("; ", "\n"))
        skips, scale = self.train(0.0, "init_scale=1024.0", restored=better)
        self.assertEqual(
            (skips, scale), (tuned["recommended"]["skips"], tuned["recommended"]["final_scale"]), tuned["code"]
        )

    def test_within_its_interval_where_they_do(self):
        self.train(0.05, "init_scale=1024.0")
        asked = self.tune("--init-scale", "65536", "--growth-interval", "20")["asked"]
        skips, _ = self.train(0.05, "growth_interval=20")
        low, high = asked["skips_interval"]
        self.assertTrue(low - 1 <= skips <= high + 1, f"{skips} skips, predicted {low} to {high}")

    def test_slow_growth_against_fast(self):
        careful = self.train(0.05, "growth_factor=1.5, growth_interval=250", steps=1000)
        fast = self.tune("--growth-factor", "2", "--growth-interval", "100")["asked"]
        happened = self.train(0.05, "growth_factor=2.0, growth_interval=100", steps=1000)
        slow = self.tune("--growth-factor", "1.5", "--growth-interval", "250")["asked"]
        self.assertGreater(happened[0], careful[0])
        for asked, (skips, _) in ((fast, happened), (slow, careful)):
            low, high = asked["skips_interval"]
            self.assertTrue(low - 1 <= skips <= high + 1, f"{skips} skips, predicted {low} to {high}")


if __name__ == "__main__":
    unittest.main()
