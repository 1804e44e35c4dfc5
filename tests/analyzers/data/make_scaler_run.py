"""Writes scaler_run.csv: a thousand steps of torch's own GradScaler whose settings are changed on the way.

    python make_scaler_run.py > scaler_run.csv

The columns are those of scaler_updates.csv. Gradients are made non-finite at random, through a real backward pass.
"""

import random

import torch

STEPS = 1000
CHANGE_EVERY = 25


def main() -> None:
    generator = random.Random(7)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=1e-6)
    scaler = torch.amp.GradScaler("cpu", growth_interval=4)
    print(f"# torch {torch.__version__.split('+')[0]}: torch.amp.GradScaler on the CPU")
    print("sequence,scale_before,tracker_before,found_inf,growth,backoff,interval,scale_after,tracker_after")
    skips = 0.2
    for step in range(STEPS):
        if step % CHANGE_EVERY == CHANGE_EVERY - 1:
            scaler.set_growth_factor(generator.choice([1.0000001, 1.1, 1.5, 2.0, 4.0]))
            scaler.set_backoff_factor(generator.choice([0.1, 0.3, 0.5, 0.75, 0.9999999]))
            scaler.set_growth_interval(generator.choice([1, 2, 3, 7, 20]))
            skips = generator.choice([0.02, 0.2, 0.5])
            # Towards the middle again, so that the scale ends at neither 0 nor infinity.
            if scaler.get_scale() < 2.0**-20:
                scaler.set_growth_interval(1)
                skips = 0.02
        optimizer.zero_grad()
        bad = generator.random() < skips
        scaler.scale((weight * (float("inf") if bad else 0.5)).sum()).backward()
        before = (scaler.get_scale(), int(scaler._get_growth_tracker()))
        scaler.step(optimizer)
        scaler.update()
        print(
            f"0,{before[0].hex()},{before[1]},{int(bad)},{scaler.get_growth_factor().hex()},"
            f"{scaler.get_backoff_factor().hex()},{scaler.get_growth_interval()},{scaler.get_scale().hex()},"
            f"{int(scaler._get_growth_tracker())}"
        )


if __name__ == "__main__":
    main()
