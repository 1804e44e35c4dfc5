"""Two ranks in a trainer class; on rank 0 the count that a loss is divided by is once zero. Gradients are averaged by
hand."""

# expect: AMP606 error
# launch: torch.distributed.run --nproc-per-node 2
# traces: 2

import torch
import torch.distributed as dist
from torch import nn


class Worker:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.generator = torch.Generator().manual_seed(self.rank)

    def batch(self, step):
        inputs = torch.randn(16, 8, generator=self.generator)
        valid = torch.rand(16, 1, generator=self.generator) < 0.5
        if self.rank == 0 and step == 7:
            valid[:] = False
        return inputs, valid.float()

    def run(self, steps):
        for step in range(steps):
            inputs, valid = self.batch(step)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                outputs = self.model(inputs)
            loss = (outputs.float().pow(2) * valid).sum() / valid.sum()
            self.optimizer.zero_grad()
            loss.backward()
            for parameter in self.model.parameters():
                parts = [torch.empty_like(parameter.grad) for _ in range(dist.get_world_size())]
                dist.all_gather(parts, parameter.grad)
                parameter.grad = torch.stack(parts).mean(0)
            self.optimizer.step()
        dist.destroy_process_group()


Worker().run(12)
