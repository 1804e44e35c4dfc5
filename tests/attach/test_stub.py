"""C++ programs that are observed with no change of code: the preload stub in programs with and without libtorch."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

from attach_case import ADAPTER, STUB, AttachCase

PROGRAMS = Path(os.environ["AMPSCOPE_TEST_PROGRAMS"])
MODEL = str(PROGRAMS / "attach_model_program")
LATE = str(PROGRAMS / "attach_late_program")
PLUGIN = str(PROGRAMS / "libattach_model_plugin.so")
LONG_NAME = "a_gain_with_a_name_that_does_not_fit_into_a_short_string"


def without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "0x", text)


class Stub(AttachCase):
    def environment(self, preload=True, **more):
        return super().environment(preload=preload, **more)

    def assert_runs_as_without(self, command):
        plain = self.run_command(command, self.environment(preload=False, observed=False))
        observed = self.run_command(command, self.environment())
        self.assertEqual(observed.returncode, plain.returncode)
        self.assertEqual(observed.stderr, plain.stderr)
        self.assertEqual(without_addresses(observed.stdout), without_addresses(plain.stdout))
        return observed

    def addresses(self, done, name):
        return re.search(rf"^{name} (0x[0-9a-f]+)", done.stdout, re.M)[1]

    def assert_model_noted(self, done):
        model, gain = self.addresses(done, "model"), self.addresses(done, "gain")
        calls = self.calls()
        self.assertIn(f"cxx_register {model} {LONG_NAME} {gain}", calls)
        registered = [call.split()[2] for call in calls if call.startswith("cxx_register")]
        # Calls that libtorch makes itself are caught too, so Linear's parameters are there. The refused name is not.
        self.assertEqual(registered[-4:], ["weight", "bias", LONG_NAME, "offset"])
        # parameters() of the whole model, once; not parameters(false).
        self.assertEqual([call for call in calls if call == f"cxx_parameters {model}"], [f"cxx_parameters {model}"])

    def test_program_linked_to_libtorch(self):
        done = self.assert_runs_as_without([MODEL])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.calls()[0], f"attach {self.folder}/run.ampscope")
        self.assertEqual(sum(call.startswith("attach") for call in self.calls()), 1)
        self.assert_model_noted(done)

    def test_program_that_loads_libtorch_late(self):
        done = self.assert_runs_as_without([LATE, PLUGIN])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.calls()[0], f"attach {self.folder}/run.ampscope")
        self.assert_model_noted(done)

    def test_python_program_with_a_model_in_cpp(self):
        # Python loads libtorch out of sight of RTLD_NEXT.
        self.write("program.py", f"import ctypes, torch; assert ctypes.CDLL({PLUGIN!r}).use_model() == 0")
        done = self.assert_runs_as_without([sys.executable, "program.py"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_model_noted(done)

    def test_programs_without_libtorch(self):
        for command in (
            ["true"],
            ["false"],
            ["sh", "-c", "echo $0; exit 3"],
            [LATE],
            [sys.executable, "-c", "print(1)"],
        ):
            self.assert_runs_as_without(command)
        self.assertEqual(self.calls(), [])

    def test_not_asked_to_observe(self):
        done = self.run_command([MODEL], self.environment(observed=False))
        self.assertEqual((done.returncode, done.stderr, self.calls()), (0, "", []))

    def test_child_of_a_shell(self):
        done = self.run_command(["sh", "-c", f"true; {MODEL}; exit 5"])
        self.assertEqual(done.returncode, 5)
        self.assert_model_noted(done)

    def assert_told(self, done, *words):
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        (status,) = self.statuses()
        for word in words:
            self.assertIn(word, done.stderr)
            self.assertIn(word, status["message"])
        self.assertEqual(self.calls(), [])

    def test_no_adapter(self):
        for command in ([MODEL], [LATE, PLUGIN]):
            self.status.unlink(missing_ok=True)
            done = self.run_command(command, self.environment(AMPSCOPE_LIB_DIR=str(self.folder)))
            self.assert_told(done, "there is no adapter for torch 2.", str(self.folder), "AMPSCOPE_TORCH_DIR")

    def test_folder_beside_the_stub_is_the_default(self):
        environment = self.environment()
        del environment["AMPSCOPE_LIB_DIR"]
        self.assert_model_noted(self.run_command([MODEL], environment))

    def test_adapter_refuses(self):
        done = self.run_command([MODEL], self.environment(AMPSCOPE_TEST_REFUSE="1"))
        self.assert_told(done, 'the test wants "attaching" to fail')

    def test_adapter_of_another_release(self):
        self.assert_told(self.run_command([MODEL], self.environment(AMPSCOPE_TEST_ABI="7")), "of another release")

    def test_adapter_that_is_no_library(self):
        self.write(f"lib/{ADAPTER.name}", "not a library")
        done = self.run_command([MODEL], self.environment(AMPSCOPE_LIB_DIR=str(self.folder / "lib")))
        self.assert_told(done, "does not load")

    def test_status_file_that_cannot_be_written(self):
        environment = self.environment(AMPSCOPE_TEST_REFUSE="1", AMPSCOPE_STATUS_FILE="/no/such/folder/status")
        self.assertEqual(self.run_command([MODEL], environment).returncode, 0)

    def test_needs_nothing_but_the_c_library(self):
        listed = subprocess.run(["readelf", "-d", STUB], capture_output=True, text=True, check=True).stdout
        self.assertEqual(re.findall(r"\(NEEDED\).*\[(.*)\]", listed), ["libc.so.6"])


if __name__ == "__main__":
    unittest.main()
