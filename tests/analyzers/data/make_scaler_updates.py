"""Writes scaler_updates.csv: what torch's own operator does to a loss scale, for scaler_model_test.cpp.

    python make_scaler_updates.py > scaler_updates.csv

One line is one update; a sequence goes on with the state that the line before left. Floats are hexadecimal, so nothing
is lost in between.
"""

import random

import torch

SETTINGS = [
    # growth, backoff, interval, initial scale
    (2.0, 0.5, 2000, 65536.0),
    (2.0, 0.5, 3, 65536.0),
    (1.5, 0.5, 2, 1000.0),
    (1.0000001, 0.9999999, 1, 3.0),
    (1.1, 0.3, 4, 12345.678),
    (4.0, 0.25, 1, 2.0**120),
    (2.0, 0.5, 1, 3.4028234663852886e38),
    (2.0, 0.1, 5, 1e-44),
    (1.7, 0.7, 1, 2.0**-149),
    (2.0, 0.5, 2, 0.0),
    (2.0, 0.5, 2, float("inf")),
    (2.0, 0.5, 2, float("nan")),
]


def main() -> None:
    print(f"# torch {torch.__version__.split('+')[0]}: _amp_update_scale_ on the CPU")
    print("sequence,scale_before,tracker_before,found_inf,growth,backoff,interval,scale_after,tracker_after")
    generator = random.Random(20)
    for sequence, (growth, backoff, interval, initial) in enumerate(SETTINGS):
        scale = torch.tensor(initial, dtype=torch.float32)
        tracker = torch.tensor(0, dtype=torch.int32)
        skips = generator.choice([0.05, 0.3, 0.6])
        for _ in range(60):
            found = generator.choice([1.0, 1.0, 2.0]) if generator.random() < skips else 0.0
            before = (scale.item(), tracker.item())
            torch._amp_update_scale_(scale, tracker, torch.tensor(found), growth, backoff, interval)
            print(
                f"{sequence},{before[0].hex()},{before[1]},{found:g},{growth.hex()},{backoff.hex()},{interval},"
                f"{scale.item().hex()},{tracker.item()}"
            )


if __name__ == "__main__":
    main()
