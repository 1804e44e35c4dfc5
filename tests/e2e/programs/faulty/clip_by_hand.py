"""A trainer class that clips by hand, with a norm of its own, while the gradients are scaled."""

# expect: AMP202 error source=norm|multiply

import torch
from torch import nn


def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    total = torch.stack([g.norm() for g in gradients]).norm()  # <- norm
    coefficient = max_norm / (total + 1e-6)
    if coefficient < 1:
        for gradient in gradients:
            gradient.mul_(coefficient)  # <- multiply


class Trainer:
    def __init__(self, model, lr=0.05, max_norm=1.0):
        self.model = model
        self.max_norm = max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.grad_scaler = torch.amp.GradScaler("cpu")

    def training_step(self, images, labels):
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device_type="cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(self.model(images), labels)
        self.grad_scaler.scale(loss).backward()
        clip_gradients(self.model.parameters(), self.max_norm)
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()
        return loss.detach()

    def fit(self, batches):
        for images, labels in batches:
            print(self.training_step(images, labels).item().hex())


torch.manual_seed(0)
data = [(torch.randn(32, 16), torch.randint(4, (32,))) for _ in range(30)]
Trainer(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))).fit(data)
