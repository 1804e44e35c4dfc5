"""One process that takes steps when it is told to: reads "<model>\\t<peer>\\t<steps>", writes CPU and wall seconds."""

from __future__ import annotations

import os
import sys
import time
import warnings


def main() -> None:
    # Before torch: its threads inherit it.
    os.sched_setaffinity(0, {int(sys.argv[1])})
    warnings.filterwarnings("ignore")
    import torch
    from models import MODELS
    from peers import PEERS

    torch.set_num_threads(1)
    torch.manual_seed(0)
    steps = {}
    print("ready", flush=True)
    for line in sys.stdin:
        model, peer, count = line.rstrip("\n").split("\t")
        if model not in steps:
            steps[model] = MODELS[model]()
        step = steps[model]
        with PEERS[peer]():
            wall, own = time.perf_counter(), time.process_time()
            for _ in range(int(count)):
                step()
            print(time.process_time() - own, time.perf_counter() - wall, flush=True)


if __name__ == "__main__":
    main()
