"""Ways to start a program, and what must not be disturbed by it: each leaves one trace of the training process."""

from __future__ import annotations

import os
import shutil
import subprocess
import textwrap
import unittest
from pathlib import Path

import harness
from attach_case import AttachCase, training
from harness import PYTHON


class StartTest(AttachCase):
    def test_script(self):
        self.write("train.py", training())
        printed = self.unchanged(PYTHON, "train.py").stdout
        report = self.assert_one_trace()
        self.assertEqual([PYTHON, "train.py"], report["run"]["command"])
        self.assertEqual(0, report["run"]["exit_status"])
        # The losses that the program itself prints, from the first step on and not times the loss scale.
        [loss] = [series["points"] for series in report["series"] if series["name"] == "loss"]
        self.assertEqual(
            {int(step): float.fromhex(value) for step, value in map(str.split, printed.splitlines())},
            {point["first_step"]: point["mean"] for point in loss},
        )

    def test_module_of_a_package(self):
        self.write("recipes/__init__.py", "")
        self.write("recipes/__main__.py", "from recipes import train")
        self.write("recipes/train.py", training())
        self.unchanged(PYTHON, "-m", "recipes")
        self.assert_one_trace()

    def test_program_on_the_command_line(self):
        self.unchanged(PYTHON, "-c", training())
        self.assert_one_trace()

    def test_shell_script(self):
        self.write("train.py", training())
        script = self.write("train.sh", f'#!/bin/sh\nset -e\necho start\n"{PYTHON}" train.py "$@"\necho end\n')
        script.chmod(0o755)
        self.unchanged("./train.sh")
        self.assert_one_trace()

    def test_python_of_a_virtual_environment(self):
        import torch

        environment = self.folder / "venv"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", environment], check=True)
        packages = next(environment.glob("lib/python*/site-packages"))
        (packages / "torch.pth").write_text(str(Path(torch.__file__).parent.parent))
        self.write("train.py", training())
        self.unchanged("venv/bin/python", "train.py")
        self.assert_one_trace()

    def test_command_on_the_path(self):
        self.write("train.py", "#!/usr/bin/env python3\n" + training()).chmod(0o755)
        path = f"{self.folder}:{Path(PYTHON).parent}:{os.environ['PATH']}"
        self.unchanged("train.py", PATH=path)
        self.assert_one_trace()

    def test_torch_imported_late(self):
        self.write("train.py", "import importlib, json\nimportlib.import_module('job').main()\n")
        self.write("job.py", "def main():\n" + textwrap.indent(training(), "    "))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()

    def test_import_by_hand(self):
        self.write("train.py", training(before="import ampscope"))
        libraries = Path(harness.COMMAND).parent.parent / "lib" / "ampscope"
        done = self.plain(PYTHON, "train.py", PYTHONPATH=str(libraries / "python"))
        self.assertEqual(0, done.status, done.stderr)
        shutil.move(self.folder / "run.ampscope", self.trace)
        self.assert_one_trace()

    def test_import_by_hand_under_the_command(self):
        self.write("train.py", training(before="import ampscope", after="assert ampscope.is_attached()"))
        libraries = Path(harness.COMMAND).parent.parent / "lib" / "ampscope"
        self.unchanged(PYTHON, "train.py", PYTHONPATH=str(libraries / "python"))
        self.assert_one_trace()

    def test_exact_exit_of_a_program_that_does_not_train(self):
        self.write("sample.py", "import torch, sys\nprint(torch.ones(3).sum())\nsys.exit(7)\n")
        watched = self.unchanged(PYTHON, "sample.py", status=7)
        self.assertEqual([], self.names())
        self.assertIn("ampscope", watched.stderr)


class ProcessesTest(AttachCase):
    def test_torchrun(self):
        self.write(
            "train.py",
            training(
                before="""
                    import torch.distributed as dist
                    dist.init_process_group("gloo")
                """,
                after="dist.destroy_process_group()",
            ).replace("print(step,", "dist.get_rank() or print(step,"),
        )
        torchrun = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        self.unchanged(*torchrun, "train.py")
        self.assertEqual(["run.ampscope", "run.rank1.ampscope"], self.names())
        report = self.report()
        self.assertEqual(2, report["run"]["ranks"])
        self.assertEqual(12, report["run"]["steps"])

    def loader(self, method: str) -> str:
        return f"""
            import torch
            from torch import nn
            from torch.utils.data import DataLoader, Dataset

            class Squares(Dataset):
                def __len__(self):
                    return 96
                def __getitem__(self, index):
                    value = torch.full((4,), float(index)) / 96
                    return value, value.square().sum()

            def main():
                torch.manual_seed(0)
                model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
                optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
                loader = DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="{method}")
                for inputs, targets in loader:
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        loss = (model(inputs).float().squeeze(1) - targets).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    print(loss.item().hex())

            if __name__ == "__main__":
                main()
        """

    def test_loader_workers_forked(self):
        self.write("train.py", self.loader("fork"))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()

    def test_loader_workers_spawned(self):
        self.write("train.py", self.loader("spawn"))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()

    def test_children_that_do_not_train(self):
        self.write("embed.py", "import torch\nprint(torch.nn.Linear(2, 2)(torch.ones(2)).shape)\n")
        children = """
            import subprocess, sys
            print(subprocess.check_output([sys.executable, "embed.py"], text=True))
            print(subprocess.check_output(["sh", "-c", "echo shell; true"], text=True))
        """
        self.write("train.py", training(before=children, after=children))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()

    def test_child_that_trains_too(self):
        self.write("other.py", training())
        after = 'import subprocess, sys\nprint(subprocess.check_output([sys.executable, "other.py"], text=True))'
        self.write("train.py", training(after=after))
        self.unchanged(PYTHON, "train.py")
        names = self.names()
        self.assertEqual(2, len(names), names)
        self.assertRegex(names[0], r"^run\.\d+\.ampscope$")
        self.assertEqual("run.ampscope", names[1])
        for path in harness.traces_beside(self.trace):
            self.assertEqual(12, harness.report(path)["run"]["steps"], path)

    def test_fork_in_the_middle(self):
        each_step = """
            if step == 5:
                import os, sys
                child = os.fork()
        """
        after = """
            if child:
                assert os.waitpid(child, 0)[1] == 0
            else:
                os._exit(0)
        """
        # The two write to one stream: only the parent may print, or lines would mix in any order.
        program = training(before="child = 1", each_step=each_step, after=after).replace(
            "print(step,", "child and print(step,"
        )
        self.write("train.py", program)
        self.unchanged(PYTHON, "train.py")
        names = self.names()
        self.assertIn("run.ampscope", names)
        self.assertEqual(12, harness.report(self.trace)["run"]["steps"])
        children = [path for path in harness.traces_beside(self.trace) if path != self.trace]
        self.assertEqual(1, len(children), names)
        for path in children:
            self.assertEqual(6, harness.report(path)["run"]["steps"])

    def test_processes_spawned_by_torch(self):
        body = textwrap.indent(training().replace("print(step,", "rank or print(step,"), "    ")
        self.write(
            "train.py",
            f"import torch.multiprocessing as mp\ndef work(rank):\n{body}\n"
            "if __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n",
        )
        self.unchanged(PYTHON, "train.py")
        names = self.names()
        self.assertEqual(2, len(names), names)
        for path in harness.traces_beside(self.trace):
            self.assertEqual(12, harness.report(path)["run"]["steps"], path)


class SurroundingsTest(AttachCase):
    def test_sitecustomize_of_the_user(self):
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.greeting = 'hello from sitecustomize'\n")
        self.write("train.py", "import sitecustomize\nprint(greeting, sitecustomize.__file__)\n" + training())
        self.unchanged(PYTHON, "train.py", PYTHONPATH=str(self.folder / "site"))
        self.assert_one_trace()

    def test_python_path_of_the_user(self):
        self.write("mine/helper.py", "value = 42\n")
        self.write("train.py", "import helper, sys\nprint(helper.value, sys.path)\n" + training())
        self.unchanged(PYTHON, "train.py", PYTHONPATH=f"{self.folder / 'mine'}:{self.folder}")
        self.assert_one_trace()

    @unittest.skipUnless(harness.have("cc"), "needs a C compiler")
    def test_preload_of_the_user(self):
        source = self.write("mine.c", "int user_library_is_here(void) { return 42; }\n")
        library = self.folder / "mine.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        self.write("train.py", training(after="import ctypes\nprint(ctypes.CDLL(None).user_library_is_here())\n"))
        self.unchanged(PYTHON, "train.py", LD_PRELOAD=str(library))
        self.assert_one_trace()

    def test_standard_input_and_arguments(self):
        self.write("train.py", training(after="import sys\nprint(sys.argv, sys.stdin.read())\n"))
        self.unchanged(PYTHON, "train.py", "--", "--level", "-o", "a b", "")
        self.assert_one_trace()

    def test_settings_of_torch_stay(self):
        state = """
            import gc, threading
            print(torch.get_rng_state().sum(), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"),
                  torch.get_num_threads(), torch.get_default_dtype(), torch.is_anomaly_enabled(),
                  [t.name for t in threading.enumerate()])
            # Nothing holds a tensor back: neither the loss nor its graph.
            print(sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects()))
        """
        self.write("train.py", training(each_step=state, before=""))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()

    def test_functions_of_torch_look_the_same(self):
        look = """
            import inspect, pickle, copy
            print(inspect.signature(torch.amp.GradScaler.step), inspect.signature(nn.utils.clip_grad_norm_))
            print(nn.utils.clip_grad_norm_.__module__, torch.amp.GradScaler.scale.__qualname__)
            print(inspect.getsource(torch.optim.lr_scheduler.LRScheduler.step)[:40])
            print(len(pickle.dumps(scaler)), type(copy.deepcopy(optimizer)).__name__)
            print(sorted(vars(optimizer)), sorted(vars(scaler)), sorted(vars(model)))
            print(model._forward_hooks, model[0].weight._backward_hooks)
        """
        self.write("train.py", training(after=look))
        self.unchanged(PYTHON, "train.py")
        self.assert_one_trace()


if __name__ == "__main__":
    unittest.main()
