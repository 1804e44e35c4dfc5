"""The values that are recorded, against those a program computes of itself."""

from __future__ import annotations

import unittest

from attach_case import AttachCase, training
from harness import PYTHON

#: Prints the norm of the gradients divided by the loss scale, in double precision, before the optimizer sees them.
NORMS = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused={FUSED})
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
inputs, targets = torch.randn(64, 8), torch.randint(3, (64,))
for step in range(12):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    squares = sum((p.grad.double() / scaler._scale.double()).square().sum() for p in model.parameters())
    print(step, squares.sqrt().item())
    scaler.step(optimizer)
    scaler.update()
"""

#: Prints the mean and largest distance in ulp of bf16, and that relative to the norm, of a layer in bf16 from the same
#: in fp32. Two mantissas one apart are 2^-7 of the power of two under them apart.
ROUNDING = """
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(512, 48)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
inputs = torch.randn(64, 512)
for step in range(1):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(inputs)
    out.float().square().mean().backward()
    optimizer.step()
wide = [t.detach().bfloat16().float() for t in (layer.bias, inputs, layer.weight.t())]
exact = torch.addmm(*wide).double()
error = (out.detach().double() - exact).abs()
ulp = 2.0 ** (torch.frexp(exact)[1].double() - 1 - 7)
print((error / ulp).mean().item(), (error / ulp).max().item(), (error.norm() / exact.norm()).item())
"""

#: The weights of a layer grow by 6 % a step. Prints the step in which its results no longer fit fp16.
GROWTH = """
import sys

import torch
from torch import nn

torch.manual_seed(0)
body, last = nn.Sequential(nn.Linear(16, 32), nn.Tanh()), nn.Linear(32, 4)
optimizer = torch.optim.SGD([*body.parameters(), *last.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**6, growth_interval=10**6)
with torch.no_grad():
    last.weight.mul_(100)
for step in range(int(sys.argv[1])):
    with torch.autocast("cpu", dtype=torch.float16):
        out = last(body(torch.randn(32, 16)))
    if not out.isfinite().all():
        print(step)
        break
    optimizer.zero_grad()
    scaler.scale(nn.functional.cross_entropy(out.float() * 1e-4, torch.arange(32) % 4)).backward()
    scaler.step(optimizer)
    scaler.update()
    with torch.no_grad():
        last.weight.mul_(1.06)
"""


class ValuesTest(AttachCase):
    def assert_norms(self, fused: bool) -> None:
        self.write("train.py", NORMS.replace("{FUSED}", str(fused)))
        printed = self.unchanged(PYTHON, "train.py").stdout
        report = self.assert_one_trace()
        [norms] = [series["points"] for series in report["series"] if series["name"] == "grad_norm"]
        recorded = {point["first_step"]: point["mean"] for point in norms}
        for line in printed.splitlines():
            step, norm = line.split()
            self.assertAlmostEqual(1, recorded[int(step)] / float(norm), places=6, msg=line)
        self.assertEqual(12, len(recorded))

    def test_gradient_norm(self):
        self.assert_norms(fused=False)

    def test_gradient_norm_under_a_fused_optimizer(self):
        """The scaler leaves the gradients as they are: the kernel divides."""
        self.assert_norms(fused=True)

    def test_calls_before_the_first_anomaly(self):
        self.write("train.py", training(before="import sys"))
        self.unchanged(PYTHON, "train.py")
        report = self.assert_one_trace()
        skipped = report["run"]["skipped_steps"][0]
        self.assertRegex(self.info(), rf"flight recorder +\d+ calls up to step {skipped}, the last: .*aten::")

    def test_rounding_of_an_op(self):
        """At the level shadow, an op's distance from fp32 is the one that the program finds itself."""
        self.write("train.py", ROUNDING)
        printed = self.watched(PYTHON, "train.py", level="shadow").stdout.split()
        mean, largest, relative = (float(word) for word in printed)
        report = self.report()
        [row] = [op for op in report["ops"] if op["op"] == "aten::addmm" and op["dtype_out"] == "bf16"]
        self.assertEqual(("bf16", "fp32", 1), tuple(row["rounding"][key] for key in ("dtype", "reference", "steps")))
        self.assertEqual(64 * 48, row["rounding"]["elements"])
        self.assertAlmostEqual(mean, row["rounding"]["mean_ulp"], delta=1e-6 * mean)
        self.assertAlmostEqual(largest, row["rounding"]["max_ulp"], delta=1e-6 * largest)
        self.assertAlmostEqual(relative, row["rounding"]["relative_error"], delta=1e-6 * relative)

    def test_end_of_headroom(self):
        """The end that is told long before it comes is the one that comes."""
        self.write("train.py", GROWTH)
        end = int(self.plain(PYTHON, "train.py", "500").stdout)
        self.watched(PYTHON, "train.py", "80")
        [finding] = [finding for finding in self.report()["findings"] if finding["rule"] == "AMP410"]
        earliest, about, latest = (finding["evidence"][f"end_step{which}"] for which in ("_earliest", "", "_latest"))
        self.assertLess(80, end)
        self.assertLessEqual(earliest, end)
        self.assertLessEqual(end, latest)
        self.assertLess(abs(about - end), 0.1 * end)
        self.assertLess(latest - earliest, 0.4 * end)


if __name__ == "__main__":
    unittest.main()
