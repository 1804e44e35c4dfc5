"""A small wrapper like accelerate's: accumulation, clipping that unscales, a schedule that waits for steps. Right."""

# expect: quiet

import contextlib

import torch
from torch import nn


class AcceleratedOptimizer:
    def __init__(self, optimizer, scaler, state):
        self.optimizer, self.scaler, self.state, self.skipped = optimizer, scaler, state, False

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self):
        if self.state.sync:
            self.optimizer.zero_grad()

    def step(self):
        if not self.state.sync:
            return
        before = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.skipped = self.scaler.get_scale() < before


class AcceleratedSchedule:
    def __init__(self, schedule, optimizer, state):
        self.schedule, self.optimizer, self.state = schedule, optimizer, state

    def step(self):
        if self.state.sync and not self.optimizer.skipped:
            self.schedule.step()


class Accelerator:
    def __init__(self, accumulate):
        self.accumulate_steps, self.count, self.sync = accumulate, 0, True
        self.scaler = torch.amp.GradScaler("cpu")

    def prepare(self, model, optimizer, schedule):
        model.forward = torch.autocast("cpu", dtype=torch.float16)(model.forward)
        optimizer = AcceleratedOptimizer(optimizer, self.scaler, self)
        return model, optimizer, AcceleratedSchedule(schedule, optimizer, self)

    @contextlib.contextmanager
    def accumulate(self):
        self.count += 1
        self.sync = self.count % self.accumulate_steps == 0
        yield

    def backward(self, loss):
        self.scaler.scale(loss / self.accumulate_steps).backward()

    def clip_grad_norm_(self, optimizer, parameters, limit):
        self.scaler.unscale_(optimizer.optimizer)
        return nn.utils.clip_grad_norm_(parameters, limit)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=20)
accelerator = Accelerator(3)
model, optimizer, schedule = accelerator.prepare(model, optimizer, schedule)
for _ in range(45):
    x, y = torch.randn(16, 12), torch.randint(5, (16,))
    with accelerator.accumulate():
        loss = nn.functional.cross_entropy(model(x).float(), y)
        accelerator.backward(loss)
        if accelerator.sync:
            accelerator.clip_grad_norm_(optimizer, model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
