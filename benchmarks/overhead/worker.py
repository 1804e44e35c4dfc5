"""One process that takes steps when it is told to: reads "<model>\\t<peer>\\t<steps>", writes CPU and wall seconds.

worker.py CORE [msprobe LEVEL FOLDER]
"""

from __future__ import annotations

import os
import sys
import time


def main() -> None:
    # Before torch: its threads inherit it.
    os.sched_setaffinity(0, {int(sys.argv[1])})
    import torch
    from models import MODELS
    from peers import PEERS, Msprobe

    torch.set_num_threads(1)
    torch.manual_seed(0)
    msprobe = Msprobe(sys.argv[3], sys.argv[4]) if sys.argv[2:3] == ["msprobe"] else None
    trainings = {}
    print("ready", flush=True)
    for line in sys.stdin:
        name, peer, count = line.rstrip("\n").split("\t")
        if name not in trainings:
            torch.manual_seed(0)
            trainings[name] = MODELS[name]()
        training = trainings[name]
        with PEERS[peer](training.model):
            wall, own = time.perf_counter(), time.process_time()
            for _ in range(int(count)):
                if msprobe:
                    msprobe.step(training.model, training.step)
                else:
                    training.step()
            print(time.process_time() - own, time.perf_counter() - wall, flush=True)


if __name__ == "__main__":
    main()
