"""Where the trace cannot be written, the run goes on as if nothing were, and is told so once."""

from __future__ import annotations

import os
import subprocess
import unittest
from pathlib import Path

import harness
from attach_case import AttachCase, training
from harness import PYTHON


def mount(folder: Path, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True)
    return done.returncode == 0


class StorageTest(AttachCase):
    def mounted(self, options: str) -> Path:
        folder = self.folder / "mounted"
        if os.geteuid() != 0 or not mount(folder, options):
            self.skipTest("cannot mount a file system here")
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def goes_on(self, folder: Path) -> harness.Ended:
        self.write("train.py", training())
        plain = self.plain(PYTHON, "train.py")
        watched = harness.execute_watched([PYTHON, "train.py"], folder / "run.ampscope", self.folder)
        self.assertEqual(plain.status, watched.status, watched.stderr)
        self.assertEqual(plain.stdout, watched.stdout)
        return watched

    def assert_told_once(self, ended: harness.Ended, *words: str) -> None:
        told = [line for line in ended.stderr.splitlines() if any(word in line for word in words)]
        self.assertEqual(1, len(told), ended.stderr)

    def test_read_only_folder(self):
        """The command says so before it starts anything; a program that attaches by itself goes on without."""
        folder = self.mounted("ro,size=1m")
        trace = folder / "run.ampscope"
        self.write("train.py", training())
        refused = harness.execute_watched([PYTHON, "train.py"], trace, self.folder)
        self.assertEqual((125, ""), (refused.status, refused.stdout))
        self.assert_told_once(refused, "Read-only file system")

        plain = self.plain(PYTHON, "train.py")
        libraries = Path(harness.COMMAND).parent.parent / "lib" / "ampscope" / "python"
        attached = self.plain(
            PYTHON, "-c", "import ampscope\n" + training(), PYTHONPATH=str(libraries), AMPSCOPE_OUTPUT=str(trace)
        )
        self.assertEqual((0, plain.stdout), (attached.status, attached.stdout), attached.stderr)
        self.assert_told_once(attached, "ampscope")

    def test_full_disk_from_the_start(self):
        folder = self.mounted("size=64k")
        (folder / "filler").write_bytes(bytes(64 * 1024))
        watched = self.goes_on(folder)
        self.assert_told_once(watched, "No space left")

    def test_disk_that_fills_up(self):
        folder = self.mounted("size=4k")
        watched = self.goes_on(folder)
        self.assert_told_once(watched, "No space left")
        # What was written while there was room can be read.
        trace = folder / "run.ampscope"
        done = harness.execute([harness.COMMAND, "info", trace], self.folder)
        self.assertIn(done.status, (0, 2))
        self.assertTrue(done.stdout or done.stderr)

    def test_trace_deleted_while_it_is_written(self):
        self.write("train.py", training(each_step=f"if step == 6: __import__('os').remove({str(self.trace)!r})"))
        plain = self.plain(PYTHON, "-c", training())
        watched = self.watched(PYTHON, "train.py")
        self.assertEqual(0, watched.status, watched.stderr)
        self.assertEqual(plain.stdout, watched.stdout)

    def test_existing_output_is_kept(self):
        self.trace.write_text("precious")
        self.write("train.py", training())
        command = [harness.COMMAND, "run", "-o", self.trace, "--", PYTHON, "train.py"]
        refused = harness.execute(command, self.folder)
        self.assertEqual(125, refused.status, refused.stderr)
        self.assertEqual("", refused.stdout)
        self.assertIn("--force", refused.stderr)
        self.assertEqual("precious", self.trace.read_text())


if __name__ == "__main__":
    unittest.main()
