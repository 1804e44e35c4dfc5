"""However a program ends, its exit status is kept and its trace can be read up to that point."""

from __future__ import annotations

import os
import unittest

import harness
from attach_case import AttachCase, training
from harness import PYTHON

AT_STEP_8 = "if step == 8:\n    "


class EndsTest(AttachCase):
    def ends(
        self, each_step: str, status: int, steps: int = 9, before: str = "import os, signal, sys"
    ) -> harness.Ended:
        self.write("train.py", training(before=before, each_step=AT_STEP_8 + each_step))
        watched = self.unchanged(PYTHON, "train.py", status=status)
        report = self.assert_one_trace(steps)
        self.assertEqual(status, report["run"]["exit_status"])
        return watched

    def dies(self, how: str, status: int) -> None:
        """Ends in a way that lets nothing run any more: what is older than a moment must be there all the same."""
        each_step = AT_STEP_8 + "time.sleep(2.5); " + how
        self.write("train.py", training(before="import os, signal, time", each_step=each_step))
        self.unchanged(PYTHON, "train.py", status=status)
        self.assertEqual(["run.ampscope"], self.names())
        run = self.report()["run"]
        self.assertEqual(status, run["exit_status"])
        self.assertIn(run["steps"], (8, 9))
        self.info()

    def test_exit_status(self):
        self.ends("sys.exit(3)", 3)

    def test_exit_with_a_message(self):
        watched = self.ends("sys.exit('no more data')", 1)
        self.assertIn("no more data", watched.stderr)

    def test_exception(self):
        watched = self.ends("raise ValueError('bad batch')", 1)
        self.assertIn("ValueError: bad batch", watched.stderr)
        self.assertIn("ValueError", self.info())

    def test_exception_in_a_program_in_cpp(self):
        watched = self.unchanged(os.environ["AMPSCOPE_PLAIN_LIBTORCH"], "throws-at-its-loss", status=134)
        self.assertIn("the loss is not finite", watched.stderr)
        self.assertEqual(["run.ampscope"], self.names())
        report = self.report()
        self.assertEqual(14, report["run"]["steps"])
        self.assertEqual(["AMP403"], [finding["rule"] for finding in report["findings"]])
        self.assertIn("the loss is not finite", self.info())

    def test_exit_without_cleaning_up(self):
        self.ends("os._exit(4)", 4)

    def test_termination(self):
        self.dies("os.kill(os.getpid(), signal.SIGTERM)", 143)

    def test_termination_that_the_program_handles(self):
        before = """
            import os, signal, sys
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        """
        self.ends("os.kill(os.getpid(), signal.SIGTERM)", 5, before=before)

    def test_interrupt(self):
        self.ends("os.kill(os.getpid(), signal.SIGINT)", 130)

    def test_kill(self):
        self.dies("os.kill(os.getpid(), signal.SIGKILL)", 137)

    def test_abort(self):
        self.dies("os.abort()", 134)

    def test_crash(self):
        self.dies("import ctypes; ctypes.string_at(0)", 139)

    def test_interrupt_of_the_whole_group(self):
        """Ctrl-C reaches the command and the program alike; the command waits for the program and reports."""
        each_step = AT_STEP_8 + "os.killpg(os.getpgid(0), signal.SIGINT)"
        self.write("train.py", training(before="import os, signal", each_step=each_step))
        # A session of its own, or the tests would be interrupted as well.
        watched = self.watched("setsid", "--wait", PYTHON, "train.py")
        self.assertEqual(130, watched.status, watched.stderr)
        self.assert_one_trace(9)

    def test_exception_in_the_middle_of_an_operator(self):
        each_step = AT_STEP_8 + "torch.ones(2) @ torch.ones(3)"
        self.ends(each_step.removeprefix(AT_STEP_8), 1)

    def test_no_such_program(self):
        watched = self.watched("./no-such-program")
        self.assertEqual(125, watched.status)
        self.assertIn("no-such-program", watched.stderr)
        self.assertEqual([], self.names())


if __name__ == "__main__":
    unittest.main()
