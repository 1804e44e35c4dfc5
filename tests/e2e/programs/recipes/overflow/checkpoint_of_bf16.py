"""Weights whose activations reach 10^5 (trained in bf16) are trained on under fp16: every step overflows in forward."""

# expect: AMP409 error source=second precision_fault=true

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(5))

    def forward(self, x):
        for layer in self.layers:
            x = F.gelu(layer(x))  # <- second
        return x


torch.manual_seed(0)
model, head = Model(), nn.Linear(32, 3)
checkpoint = {k: v * 60 if k.endswith("weight") else v for k, v in model.state_dict().items()}
model.load_state_dict(checkpoint)
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=1e-4)
scaler = torch.amp.GradScaler("cpu")
for _ in range(30):
    x = torch.randn(16, 32)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.cross_entropy(head(model(x)), torch.arange(16) % 3)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
