"""An AMP transformer on the GPU: without ampscope and under each level.

Compares losses bit for bit, the time of a step, and the calls of the CUDA runtime that wait for the device, as torch's
profiler sees them through CUPTI. Status 1 when losses differ or a level adds a call that waits.

    steps.py --ampscope build/gpu_check/bin/ampscope
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

WARM_UP = 40  # The first steps are looked at in full and the sites are new.
TIMED = 100
PROFILED = 20
WAITING = ("Synchronize", "cudaMemcpy", "cuMemcpy", "cudaFree", "cudaMalloc", "cuMemAlloc", "cuMemFree")
NOT_WAITING = ("Async",)


def train() -> None:
    """One process: prints its losses, the median of its steps and the calls that wait in a step."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = "cuda"
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), nn.Linear(512, 1000)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(device)
    generator = torch.Generator(device=device).manual_seed(1)
    x = torch.randn(16, 128, 512, device=device, generator=generator)
    y = torch.randint(0, 1000, (16, 128), device=device, generator=generator)
    losses = []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x).flatten(0, 1).float(), y.flatten())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach())

    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(TIMED):
        torch.cuda.synchronize()
        started = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as prof:
        for _ in range(PROFILED):
            step()
    calls = collections.Counter()
    for event in prof.events():
        name = event.name
        if (
            name.startswith(("cuda", "cu"))
            and any(w in name for w in WAITING)
            and not any(w in name for w in NOT_WAITING)
        ):
            calls[name] += 1
    torch.cuda.synchronize()
    result = {
        "losses": [loss.item().hex() for loss in losses],
        "step": sorted(times)[len(times) // 2],
        "waits": dict(calls),
    }
    pathlib.Path(os.environ["STEPS_RESULT"]).write_text(json.dumps(result))


def run(ampscope: str, level: str | None, folder: pathlib.Path) -> dict:
    result = folder / f"{level or 'none'}.json"
    command = [sys.executable, __file__, "--train"]
    if level:
        trace = folder / f"{level}.ampscope"
        command = [ampscope, "run", "--level", level, "--force", "-o", str(trace), "--", *command]
    environment = {**os.environ, "STEPS_RESULT": str(result), "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    out = json.loads(result.read_text())
    if level:
        report = subprocess.run(
            [ampscope, "report", str(trace), "--format", "json"], check=True, capture_output=True, text=True
        )
        out["report"] = json.loads(report.stdout)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ampscope", help="the command of a build with the CUDA part")
    parser.add_argument("--levels", default="ops,grads,auto,full")
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train()
        return 0
    if not options.ampscope:
        parser.error("--ampscope is needed")
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plain = run(options.ampscope, None, folder)
        again = run(options.ampscope, None, folder)
        if plain["losses"] != again["losses"]:
            print("steps: the program does not repeat itself without ampscope; losses are not compared")
        print(f"none        {plain['step'] * 1000:8.3f} ms   waits in {PROFILED} steps: {plain['waits']}")
        print(f"none again  {again['step'] / plain['step']:8.3f}")
        for level in options.levels.split(","):
            seen = run(options.ampscope, level, folder)
            print(f"{level:10}  {seen['step'] / plain['step']:8.3f}      waits: {seen['waits']}")
            if plain["losses"] == again["losses"] and seen["losses"] != plain["losses"]:
                wrong.append(f"{level}: losses differ from those without ampscope")
            for call, count in seen["waits"].items():
                if count > max(plain["waits"].get(call, 0), again["waits"].get(call, 0)):
                    wrong.append(f"{level}: {count} x {call}, {plain['waits'].get(call, 0)} without ampscope")
            watched = sum(1 for parameter in seen["report"]["parameters"] if parameter["gradients"])
            if level != "ops" and watched == 0:
                wrong.append(f"{level}: no gradient on the device was looked at")
    for line in wrong:
        print(f"steps: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
