"""A trainer takes the precision as an option and makes its scaler whatever the option says."""

# expect: AMP217 warning

import torch
from torch import nn


class Trainer:
    def __init__(self, model, precision):
        self.model = model
        self.dtype = {"16": torch.float16, "bf16": torch.bfloat16}[precision]
        self.scaler = torch.amp.GradScaler("cpu")
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def run(self, batches):
        for inputs, targets in batches:
            context = torch.autocast("cpu", dtype=self.dtype)
            context.__enter__()
            loss = nn.functional.cross_entropy(self.model(inputs), targets)
            context.__exit__(None, None, None)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            print(loss.item().hex())


torch.manual_seed(0)
model = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
Trainer(model, "bf16").run([(torch.randn(16, 64), torch.randint(5, (16,))) for _ in range(30)])
print("0 of 30 steps skipped")
