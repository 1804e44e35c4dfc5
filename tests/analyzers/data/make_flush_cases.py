"""Writes flush_cases.json: values rounded to fp16, and how many of them that made zero, for flush_test.cpp.

    python make_flush_cases.py > flush_cases.json

Rounding is numpy's. Each case has the histogram of exponents after rounding, the number of zeros there, how many of
these are not zero before rounding, and the same had all values been 16 times as large.
"""

import json

import numpy as np

COUNT = 200_000


def case(name: str, values: np.ndarray, structural_zeros: int) -> dict:
    values = np.concatenate([values, np.zeros(structural_zeros)])
    rounded = values.astype(np.float16).astype(np.float64)
    kept = np.abs(rounded[rounded != 0])
    exponents, counts = np.unique(np.floor(np.log2(kept)).astype(int), return_counts=True)
    raised = (values * 16).astype(np.float16)
    return {
        "name": name,
        "exponents": {str(e): int(c) for e, c in zip(exponents, counts, strict=True)},
        "zero": int((rounded == 0).sum()),
        "flushed": int(((rounded == 0) & (values != 0)).sum()),
        "flushed_if_raised_by_4": int(((raised == 0) & (values != 0)).sum()),
    }


def main() -> None:
    random = np.random.default_rng(7)
    cases = []
    for power in (-10, -14, -18, -20, -22, -23, -24, -25):
        cases.append(case(f"normal 2^{power}", random.normal(0, 2.0**power, COUNT), 0))
    for power in (-18, -22, -24):
        cases.append(case(f"laplace 2^{power}", random.laplace(0, 2.0**power, COUNT), 0))
    for power, width in ((-10, 2), (-14, 4), (-18, 4)):
        cases.append(case(f"lognormal 2^{power} width {width}", 2.0 ** random.normal(power, width, COUNT), 0))
    rows = random.normal(0, 1, (200, 1000)) * 2.0 ** random.normal(-15, 3, (200, 1))
    cases.append(case("rows of different size", rows.ravel(), 0))
    # Zeros that are zero in any precision: they must not be taken for flushed values.
    for power in (-10, -14, -18, -22):
        cases.append(case(f"normal 2^{power}, as many dead", random.normal(0, 2.0**power, COUNT), COUNT))
    cases.append(case("embedding, 1 of 100 rows", random.normal(0, 2.0**-12, COUNT // 100), COUNT))
    print(json.dumps(cases, indent=1))


if __name__ == "__main__":
    main()
