"""What is read out of a program's own code, on every supported Python that this machine has."""

import subprocess
import unittest

from attach_case import BOOTSTRAP, AttachCase, pythons

PROGRAM = """
    import importlib.util, sys

    spec = importlib.util.spec_from_file_location("text", sys.argv[1])
    text = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(text)
    told = []

    class Tensor:
        dtype = weight = None
        def to(self, *given, **options):
            told.append(text.takes_dtype_of_tensor(sys._getframe(1)))
            return self

    class Scaler:
        def get_scale(self):
            told.append(text.use_as_factor(sys._getframe(1)))
            return 2.0

    class Layer:
        dtype, weight = None, Tensor()
        def by_weight(self, x):
            return x.to(self.weight.dtype)
        def by_setting(self, x):
            return x.to(self.dtype)

    def casts(w, x, config):
        w.to(x.dtype)
        w.to("half")
        w.to(config.dtype)
        dtype = x.dtype
        w.to(dtype)
        w.to("cpu", x.dtype, copy=True)

    class Monitor:
        def __init__(self, scaler):
            self.scaler, self.kept, self.log = scaler, {}, {}
        def current(self):
            return self.scaler.get_scale()
        def keep(self):
            self.kept["scale"] = self.scaler.get_scale()
            self.log["shown"] = self.scaler.get_scale()
        def norm(self, value):
            return value / self.kept["scale"]
        def divide(self, value):
            return value / self.current()
        def show(self):
            str(self.current())

    def reads(scaler, norm):
        one = norm / scaler.get_scale()
        scale = scaler.get_scale()
        str(scaler.get_scale())
        return one * scale

    def reads_for_next(scaler, values):
        scale = scaler.get_scale()
        for value in values:
            value / scale
            scale = scaler.get_scale()

    Tensor.weight = Tensor()
    casts(Tensor(), Tensor(), Tensor())
    Layer().by_weight(Tensor())
    Layer().by_setting(Tensor())
    reads(Scaler(), 1.0)
    monitor = Monitor(Scaler())
    monitor.keep()
    monitor.divide(1.0)
    monitor.show()
    reads_for_next(Scaler(), [1.0])
    print("".join("nyx"[each] for each in told))
"""


class EveryPython(AttachCase):
    def test_tells_dtypes_of_tensors_and_factors(self):
        program = self.write("program.py", PROGRAM)
        text = BOOTSTRAP.parent / "ampscope" / "_program_text.py"
        for python in pythons():
            with self.subTest(python):
                done = subprocess.run([python, program, text], capture_output=True, text=True)
                self.assertEqual(done.stdout.split(), ["ynnyyynyynynynyx"], done.stderr)


if __name__ == "__main__":
    unittest.main()
