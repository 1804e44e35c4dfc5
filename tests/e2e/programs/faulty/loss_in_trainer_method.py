"""The model's forward is decorated with autocast; the trainer computes the loss from its fp16 outputs."""

# expect: AMP102 warning source=loss

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 40), nn.ReLU())
        self.head = nn.Linear(40, 20)

    @torch.autocast("cpu", dtype=torch.float16)
    def forward(self, x):
        return self.head(self.body(x))


class Trainer:
    def __init__(self):
        self.model = Model()
        self.optimizer = torch.optim.NAdam(self.model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)

    def compute_loss(self, outputs, targets):
        return nn.functional.mse_loss(outputs, targets.to(outputs.dtype))  # <- loss

    def train(self, data):
        for batch in data:
            loss = self.compute_loss(self.model(batch), batch)
            self.optimizer.zero_grad()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            print(loss.item().hex())


torch.manual_seed(0)
Trainer().train([torch.randn(128, 20) for _ in range(30)])
print("0 of 30 steps skipped")
