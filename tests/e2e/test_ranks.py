"""One report over the traces of all ranks: every rank's scale and skips, and the same step for all of them."""

from __future__ import annotations

from pathlib import Path

import harness
from attach_case import AttachCase
from harness import PYTHON

PROGRAM = Path(__file__).parent / "programs" / "recipes" / "processes" / "overflow_on_one_rank.py"


class RanksTest(AttachCase):
    def launch(self, processes: int) -> list[Path]:
        launcher = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
        watched = self.watched(*launcher, PROGRAM)
        self.assertEqual(0, watched.status, watched.stderr)
        traces = harness.traces_beside(self.trace)
        self.assertEqual(processes, len(traces))
        return traces

    def check(self, processes: int, skipped: list[int]) -> None:
        traces = self.launch(processes)
        together = harness.report(*traces)
        self.assertEqual(processes, together["run"]["ranks"])
        self.assertEqual(skipped, together["run"]["skipped_steps"])
        self.assertEqual([], [each["rule"] for each in together["findings"] if each["severity"] != "info"])
        scales = []
        for trace in traces:
            alone = harness.report(trace)
            self.assertEqual(skipped, alone["run"]["skipped_steps"], trace.name)
            scales.append([(at["first_step"], at["scale"], at["skipped"]) for at in alone["scaler"]["timeline"]])
        self.assertEqual([scales[0]] * processes, scales)

    def test_two_processes_without_a_skip(self):
        self.check(2, [])

    def test_four_processes_that_skip_together(self):
        self.check(4, [9])
