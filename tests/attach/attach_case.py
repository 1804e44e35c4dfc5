"""What the tests of the ways in share: running a program with the recording adapter, and what came of it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

LIB_DIR = Path(os.environ["AMPSCOPE_TEST_LIB_DIR"])
STUB = LIB_DIR / "libampscope_preload.so"
BOOTSTRAP = LIB_DIR / "python" / "bootstrap"
#: The torch that the recording adapter says it is for, and its file.
(ADAPTER,) = LIB_DIR.glob("libampscope_probe_torch*.so")
TORCH = ADAPTER.stem.removeprefix("libampscope_probe_torch")

# Complete enough for the package to take it for the real one. Its last line is written down, so that the calls show
# whether attaching came after it.
FAKE_TORCH = textwrap.dedent("""
    import os
    __version__ = "VERSION.0+cpu"
    from torch import _C, amp, compiler, optim
    import torch.optim.lr_scheduler, torch.optim.optimizer
    class Tensor: pass
    ready = True
    with open(os.environ["AMPSCOPE_TEST_LOG"], "a") as log: log.write("torch\\n")
""").replace("VERSION", TORCH)
FAKE_PARTS = {
    "_C.py": "",
    "compiler.py": "def is_compiling(): return False",
    "amp.py": """
        class GradScaler:
            def step(self, optimizer): return optimizer.step()
            def get_scale(self): return 1.0
        class autocast:
            def __enter__(self): return self
            def __exit__(self, *exception): return False
    """,
    "optim/__init__.py": "",
    "optim/optimizer.py": """
        class Handle:
            def remove(self): pass
        class Optimizer:
            def load_state_dict(self, state): pass
        def register_optimizer_step_pre_hook(hook): return Handle()
        def register_optimizer_step_post_hook(hook): return Handle()
    """,
    "optim/lr_scheduler.py": """
        class LRScheduler:
            def step(self): pass
    """,
}


def pythons() -> list[str]:
    """Every supported Python of this machine, the one that runs the test first."""
    found = {os.path.realpath(sys.executable): sys.executable}
    for minor in range(10, 15):
        path = shutil.which(f"python3.{minor}")
        if path is None:
            continue
        asked = subprocess.run([path, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        if asked.returncode == 0:
            found.setdefault(os.path.realpath(asked.stdout.strip()), asked.stdout.strip())
    return list(found.values())


class AttachCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ampscope-attach-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.log = self.folder / "log"
        self.status = self.folder / "status"
        self.python = sys.executable
        #: What a program leaves that imports the stand-in of torch, is attached and ends.
        self.attached = ["torch", f"attach {self.folder}/run.ampscope", "detach exit -"]

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def write_fake_torch(self, text=FAKE_TORCH, folder="modules"):
        self.write(f"{folder}/torch/__init__.py", text)
        for name, part in FAKE_PARTS.items():
            self.write(f"{folder}/torch/{name}", part)

    def environment(self, preload=False, observed=True, **more):
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AMPSCOPE_", "PYTHON", "LD_PRELOAD")) and name not in ("RANK", "LOCAL_RANK")
        }
        environment |= {
            "AMPSCOPE_TEST_LOG": str(self.log),
            "AMPSCOPE_LIB_DIR": str(LIB_DIR),
            "PYTHONPATH": os.pathsep.join([str(BOOTSTRAP), str(self.folder / "modules")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if observed:
            environment |= {
                "AMPSCOPE_OUTPUT": str(self.folder / "run.ampscope"),
                "AMPSCOPE_RUN_ID": "0123",
                "AMPSCOPE_STATUS_FILE": str(self.status),
            }
        if preload:
            environment["LD_PRELOAD"] = str(STUB)
        return environment | more

    def run_command(self, command, environment=None):
        return subprocess.run(
            command,
            env=self.environment() if environment is None else environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
        )

    def run_python(self, program, *options, **environment):
        script = self.write("program.py", program)
        return self.run_command([self.python, *options, str(script)], self.environment(**environment))

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def statuses(self):
        return [json.loads(line) for line in self.status.read_text().splitlines()] if self.status.exists() else []
