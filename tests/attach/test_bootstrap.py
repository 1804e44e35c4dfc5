"""Python programs that are observed with no change of code: the way in, and that nothing else is different."""

import unittest
from contextlib import contextmanager

from attach_case import ADAPTER, BOOTSTRAP, FAKE_TORCH, LIB_DIR, TORCH, AttachCase, pythons

USES_TORCH = """
    import torch
    assert torch.ready
    print(torch.__loader__.__class__.__name__, torch.__spec__.loader is torch.__loader__, vars(torch.__loader__).keys())
"""


class EveryPython(AttachCase):
    """The same on every supported Python that this machine has."""

    @contextmanager
    def running(self, python, *about):
        with self.subTest(python, about=about):
            self.python = python
            self.log.unlink(missing_ok=True)
            yield

    def test_attaches_when_torch_is_imported(self):
        self.write_fake_torch()
        for python in pythons():
            with self.running(python):
                done = self.run_python(USES_TORCH)
                self.assertEqual(done.stderr, "")
                self.assertEqual(self.calls(), self.attached)

    def test_torch_looks_as_it_does_without(self):
        self.write_fake_torch()
        for python in pythons():
            with self.running(python):
                observed = self.run_python(USES_TORCH)
                plain = self.run_python(USES_TORCH, observed=False)
                self.assertEqual(observed.stdout, plain.stdout)

    def test_isolated_python_is_attached_through_the_stub(self):
        self.write_fake_torch()
        program = f"import sys; sys.path.insert(0, {str(self.folder / 'modules')!r})\n" + "import torch\n"
        for options in (["-I"], ["-E"], ["-S"], ["-Es"], ["-W", "ignore", "-I"]):
            for python in pythons():
                with self.running(python, *options):
                    done = self.run_python(program, *options, preload=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""), options)
                    self.assertEqual(self.calls(), self.attached, options)

    def test_child_processes_are_attached_too(self):
        self.write_fake_torch()
        for python in pythons():
            with self.running(python):
                done = self.run_python(
                    "import subprocess, sys; subprocess.check_call([sys.executable, '-c', 'import torch'])"
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.calls(), self.attached)

    def test_what_the_program_sees_is_unchanged(self):
        self.write("modules/other.py", "")
        program = """
            import sys
            finders = [getattr(finder, '__name__', type(finder).__name__) for finder in sys.meta_path]
            print(sys.path, [name for name in finders if name != 'TorchFinder'], sys.argv, sys.flags)
            import sitecustomize
            print(sitecustomize.__file__, sitecustomize.__spec__.origin)
        """
        self.write("modules/sitecustomize.py", "print('theirs', __name__, __file__, __spec__.origin)")
        for python in pythons():
            with self.running(python):
                # Beside it as the one folder of PYTHONPATH, which is what the program's PYTHONPATH was.
                plain = self.run_python(program, observed=False, PYTHONPATH=str(self.folder / "modules"))
                observed = self.run_python(program)
                self.assertEqual((observed.stdout, observed.stderr), (plain.stdout, plain.stderr))


class Sitecustomize(AttachCase):
    def without_ours(self, program):
        return self.run_python(program, observed=False, PYTHONPATH=str(self.folder / "modules"))

    def test_error_of_theirs_is_told_as_without(self):
        for body in (
            "raise ValueError('theirs')",
            "import no_such_module",
            "raise ImportError('x', name='sitecustomize')",
        ):
            self.write("modules/sitecustomize.py", body)
            plain = self.without_ours("print('ran')")
            observed = self.run_python("print('ran')")
            self.assertEqual((observed.stdout, observed.stderr), (plain.stdout, plain.stderr))

    def test_exit_in_theirs_ends_the_program_as_without(self):
        self.write("modules/sitecustomize.py", "import sys; sys.exit(7)")
        self.assertEqual(self.run_python("print('ran')").returncode, self.without_ours("print('ran')").returncode)

    def test_none_shadowed_leaves_none(self):
        program = "import sys; print('sitecustomize' in sys.modules)"
        options = ["-s"]
        self.write("program.py", program)
        plain = self.run_python(program, *options, observed=False, PYTHONPATH="")
        observed = self.run_python(program, *options, PYTHONPATH=str(BOOTSTRAP))
        self.assertEqual((observed.stdout, observed.stderr), (plain.stdout, plain.stderr))

    def test_chains_without_being_asked_to_observe(self):
        self.write_fake_torch()
        self.write("modules/sitecustomize.py", "print('theirs')")
        done = self.run_python("import torch, sys; print('ampscope' in sys.modules)", observed=False)
        self.assertEqual(done.stdout.split(), ["theirs", "False"])
        self.assertEqual(self.calls(), ["torch"])

    def test_theirs_may_import_torch(self):
        self.write_fake_torch()
        self.write("modules/sitecustomize.py", "import torch")
        self.assertEqual(self.run_python("").stderr, "")
        self.assertEqual(self.calls(), self.attached)

    def test_listed_twice_runs_theirs_once(self):
        self.write("modules/sitecustomize.py", "print('theirs')")
        path = ":".join([str(BOOTSTRAP), str(BOOTSTRAP), str(self.folder / "modules"), str(BOOTSTRAP) + "/"])
        self.assertEqual(self.run_python("", PYTHONPATH=path).stdout, "theirs\n")


class OddImports(AttachCase):
    def setUp(self):
        super().setUp()
        self.write_fake_torch()

    def assert_attached_once(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.calls(), self.attached)

    def test_import_that_fails_is_tried_again(self):
        self.write_fake_torch("import os\nif os.environ.pop('FAIL', ''): raise RuntimeError('not yet')\n" + FAKE_TORCH)
        program = """
            try:
                import torch
            except RuntimeError as error:
                assert str(error) == 'not yet'
            else:
                raise AssertionError
            import torch
            assert torch.ready
        """
        self.assert_attached_once(self.run_python(program, FAIL="1"))

    def test_import_of_a_submodule_first(self):
        self.assert_attached_once(self.run_python("from torch.optim import lr_scheduler"))

    def test_reload(self):
        done = self.run_python("import importlib, torch; importlib.reload(torch)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.calls(), [*self.attached[:2], "torch", "detach exit -"])

    def test_import_in_a_thread(self):
        program = """
            import threading
            def work():
                import torch
                assert torch.ready
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """
        self.assert_attached_once(self.run_python(program))

    def test_finder_in_front_of_ours(self):
        program = """
            import sys
            from importlib.machinery import PathFinder
            class Front:
                def find_spec(self, name, path=None, target=None):
                    return PathFinder.find_spec(name, path, target) if name.startswith('torch') else None
            sys.meta_path.insert(0, Front())
            import torch
            import wave  # any other module: now it is seen that torch is there
        """
        self.assert_attached_once(self.run_python(program))

    def test_import_by_hand_while_torch_is_being_imported(self):
        self.write("modules/torch/late.py", "import ampscope; import wave")
        self.write_fake_torch(FAKE_TORCH + "from torch import late\n")
        package = {"PYTHONPATH": f"{LIB_DIR / 'python'}:{self.folder / 'modules'}"}
        self.assert_attached_once(self.run_python("import torch, colorsys", **package))

    def test_module_that_only_pretends_to_be_torch(self):
        done = self.run_python("import sys, types; sys.modules['torch'] = types.ModuleType('torch'); import wave")
        self.assertEqual((done.stdout, done.stderr, self.calls()), ("", "", []))

    def test_program_without_torch_loads_nothing_of_ours_but_the_wait(self):
        done = self.run_python("import sys; print(*sorted(name for name in sys.modules if 'ampscope' in name))")
        self.assertEqual(done.stdout.split(), ["ampscope", "ampscope._torch_import", "ampscope._version"])
        self.assertEqual(self.calls(), [])


class Failures(AttachCase):
    """Whatever goes wrong: one line, one status, and the program's own output and exit status."""

    def assert_told(self, done, *words):
        self.assertEqual((done.returncode, done.stdout), (0, "ran\n"), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertRegex(done.stderr, "^ampscope: .*; the run goes on without it$")
        (status,) = self.statuses()
        self.assertEqual(status["level"], "error")
        for word in words:
            self.assertIn(word, done.stderr)
            self.assertIn(word, status["message"])

    def test_torch_too_old(self):
        self.write_fake_torch(FAKE_TORCH.replace(f"{TORCH}.0", "2.10.1"))
        self.assert_told(
            self.run_python("import torch; print('ran')"), "torch 2.10.1+cpu is not supported", "2.11 to 2.15"
        )

    def test_no_adapter_for_this_torch(self):
        other = "2.11" if TORCH != "2.11" else "2.12"
        self.write_fake_torch(FAKE_TORCH.replace(f"{TORCH}.0", f"{other}.0"))
        self.assert_told(self.run_python("import torch; print('ran')"), f"no adapter for torch {other}", "pip install")

    def test_adapter_refuses(self):
        self.write_fake_torch()
        done = self.run_python("import torch; print('ran')", AMPSCOPE_TEST_REFUSE="1")
        self.assert_told(done, 'the test wants "attaching" to fail')

    def test_adapter_of_another_release(self):
        self.write_fake_torch()
        self.assert_told(self.run_python("import torch; print('ran')", AMPSCOPE_TEST_ABI="7"), "interface 7")

    def test_adapter_that_is_no_library(self):
        self.write_fake_torch()
        self.write(f"lib/{ADAPTER.name}", "not a library")
        done = self.run_python("import torch; print('ran')", AMPSCOPE_LIB_DIR=str(self.folder / "lib"))
        self.assert_told(done, "does not load")

    def test_workers_do_not_say_it_again(self):
        self.write_fake_torch(FAKE_TORCH.replace(f"{TORCH}.0", "2.10.1"))
        program = """
            import subprocess, sys, torch
            subprocess.check_call([sys.executable, '-c', 'import torch'])
            print('ran')
        """
        self.assert_told(self.run_python(program), "2.10.1")


class Exits(AttachCase):
    def setUp(self):
        super().setUp()
        self.write_fake_torch()

    def ending(self, program, *options):
        self.done = self.run_python(program, *options)
        (detached,) = [call for call in self.calls() if call.startswith("detach")]
        return detached

    def test_exception(self):
        self.assertEqual(
            self.ending("import torch\nraise ValueError('loss is nan')"), "detach exception ValueError: loss is nan"
        )
        self.assertEqual(self.done.returncode, 1)

    def test_exception_in_a_function_of_a_module(self):
        self.write(
            "modules/trainer.py",
            "import torch\ndef main(): raise KeyError('weight')\nif __name__ == '__main__': main()",
        )
        done = self.run_command([self.python, "-m", "trainer"])
        self.assertEqual(done.returncode, 1)
        self.assertEqual(self.calls()[-1], "detach exception KeyError: 'weight'")

    def test_exception_that_a_test_runner_kept(self):
        program = """
            import sys, torch
            def runner():
                try:
                    1 / 0
                except ZeroDivisionError as error:
                    sys.last_value = sys.last_exc = error
            runner()
        """
        self.assertEqual(self.ending(program), "detach exit -")
        self.assertEqual(self.done.returncode, 0)

    def test_exception_whose_text_raises(self):
        program = "import torch\nclass Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad"
        self.assertEqual(self.ending(program), "detach exception Bad")

    def test_sys_exit(self):
        self.assertEqual(self.ending("import sys, torch; sys.exit(3)"), "detach exit -")
        self.assertEqual(self.done.returncode, 3)

    def test_os_exit(self):
        self.assertEqual(self.ending("import os, torch; os._exit(4)"), "detach _exit -")
        self.assertEqual(self.done.returncode, 4)

    def test_forked_child_leaves_the_trace_to_its_parent(self):
        program = """
            import os, torch
            for leave in (lambda: os._exit(0), lambda: exit(0)):
                child = os.fork()
                if child == 0:
                    leave()
                os.waitpid(child, 0)
        """
        self.assertEqual(self.ending(program), "detach exit -")

    def test_hooks_of_the_program_are_untouched(self):
        program = """
            import os, pickle, sys, threading, torch
            assert sys.excepthook is sys.__excepthook__ and threading.excepthook is threading.__excepthook__
            assert pickle.loads(pickle.dumps(os._exit)) is os._exit
        """
        self.assertEqual(self.ending(program), "detach exit -")
        self.assertEqual(self.done.stderr, "")


class ByHand(AttachCase):
    def setUp(self):
        super().setUp()
        self.write_fake_torch()
        self.package = {"observed": False, "PYTHONPATH": f"{LIB_DIR / 'python'}:{self.folder / 'modules'}"}

    def test_before_and_after_torch(self):
        for program in ("import ampscope, torch", "import torch, ampscope"):
            self.log.unlink(missing_ok=True)
            done = self.run_python(program + "; assert ampscope.is_attached()", **self.package)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(self.calls(), self.attached)

    def test_takes_a_free_name(self):
        self.write("run.ampscope", "")
        self.write("run-2.ampscope", "")
        self.run_python("import ampscope, torch", **self.package)
        self.assertEqual(self.calls()[1], f"attach {self.folder}/run-3.ampscope")

    def test_keeps_the_name_that_was_asked_for(self):
        self.run_python("import ampscope, torch", AMPSCOPE_OUTPUT="%r/mine.ampscope", **self.package)
        self.assertEqual(self.calls()[1], f"attach {self.folder}/%r/mine.ampscope")

    def test_ranks_of_one_launch_share_a_run_id(self):
        launch = {"TORCHELASTIC_RUN_ID": "job7", "MASTER_PORT": "29500"}
        program = "import ampscope, torch, os; print(os.environ['AMPSCOPE_RUN_ID'])"
        ids = {self.run_python(program, RANK=rank, **launch, **self.package).stdout for rank in "01"}
        self.assertEqual(len(ids), 1)
        self.assertNotEqual(ids, {self.run_python(program, **self.package).stdout})

    def test_functions(self):
        program = """
            import ampscope
            assert ampscope.attach() is False and ampscope.trace_path() is None
            ampscope.step(); ampscope.detach()
            import torch
            assert ampscope.attach() is True and ampscope.trace_path() == "somewhere/run.ampscope"
            ampscope.step()
            ampscope.detach()
            assert not ampscope.is_attached() and ampscope.trace_path() is None
            ampscope.detach()
            assert ampscope.attach()
            print(ampscope.__version__)
        """
        done = self.run_python(program, **self.package)
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"^\d+\.\d+\.\d+$")
        torch, attach, end = self.attached
        self.assertEqual(self.calls(), [torch, attach, "step", "detach detach -", attach, end])

    def test_under_ampscope_run_it_is_the_same_module(self):
        done = self.run_python("import torch, ampscope; assert ampscope.is_attached()")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.calls(), self.attached)


if __name__ == "__main__":
    unittest.main()
