"""run --repro: the call that made the first non-finite value, alone in a program that shows it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import harness
from attach_case import AttachCase, training
from harness import PYTHON

FAULTY = Path(__file__).parent / "programs" / "faulty"


class ReproTest(AttachCase):
    def run_with_repro(self, *command: str | Path, expect: int = 0, options: tuple[str, ...] = ()) -> harness.Ended:
        done = harness.execute(
            [harness.COMMAND, "run", "-o", self.trace, "--repro", "bundle", *options, "--", *command], self.folder
        )
        self.assertEqual(expect, done.status, done.stderr)
        return done

    def shown(self, program: str) -> str:
        """What the bundle of a program prints, which must end well without ampscope and without the program."""
        done = self.run_with_repro(PYTHON, FAULTY / program)
        self.assertIn("alone: python bundle/repro.py", done.stderr)
        bundle = self.folder / "bundle"
        self.assertEqual(["inputs.pt", "repro.py"], sorted(path.name for path in bundle.iterdir()))
        alone = subprocess.run([PYTHON, bundle / "repro.py"], cwd="/", capture_output=True, text=True, timeout=200)
        self.assertEqual(0, alone.returncode, alone.stdout + alone.stderr)
        return alone.stdout

    def test_overflow_is_the_precision(self):
        self.assertIn("in torch.float32 the result is finite", self.shown("overflow_in_gram_matrix.py"))

    def test_cast_that_overflows(self):
        self.assertIn(
            "in torch.float32 the result is finite", self.shown("../recipes/overflow/depth_in_millimetres.py")
        )

    def test_what_an_op_in_place_overwrote(self):
        for program in ("square_in_place.py", "index_add_at_a_hub.py"):
            with self.subTest(program):
                self.assertIn("in torch.float32 the result is finite", self.shown(f"../recipes/overflow/{program}"))
                shutil.rmtree(self.folder / "bundle")
                self.trace.unlink()

    def test_infinity_that_became_zero(self):
        self.assertIn("in torch.float32 the result is finite", self.shown("../recipes/overflow/zero_similarity.py"))

    def test_row_that_is_masked_out(self):
        self.assertIn("not one of the precision", self.shown("../recipes/not_precision/empty_row_attention.py"))

    def test_logarithm_is_not_the_precision(self):
        self.assertIn("not one of the precision", self.shown("log_of_negative.py"))

    def test_eps_was_lost_before_the_call(self):
        self.assertIn(
            "the precision was lost before this call", self.shown("../recipes/lost_precision/eps_in_normalize.py")
        )

    def test_healthy_run_has_none(self):
        done = self.run_with_repro(PYTHON, "-c", training())
        self.assertIn("no reproduction: no finding is about a call", done.stderr)
        self.assertEqual([], list((self.folder / "bundle").iterdir()))

    def test_earlier_bundle_is_kept(self):
        (self.folder / "bundle").mkdir()
        kept = self.write("bundle/repro.py", "mine = 1")
        done = self.run_with_repro(PYTHON, "-c", "open('started', 'w')", expect=125)
        self.assertIn("holds an earlier reproduction", done.stderr)
        self.assertEqual("mine = 1", kept.read_text())
        self.assertFalse((self.folder / "started").exists())
