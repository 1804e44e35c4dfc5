"""An averaged model as training libraries have it: a function computes the new average, here in fp32 because the
weights are, and copy_() puts it into the averaged model, which was made bf16. A second one, for evaluation, gets the
weights themselves."""

# expect: AMP507 source=average

import copy

import torch
from torch import nn


class ModelAverage(nn.Module):
    def __init__(self, model, decay):
        super().__init__()
        self.module = copy.deepcopy(model).to(torch.bfloat16).requires_grad_(False)
        self.decay = decay

    def _update(self, model, update_fn):
        with torch.no_grad():
            for average, value in zip(self.module.state_dict().values(), model.state_dict().values(), strict=True):
                average.copy_(update_fn(average, value))  # <- average

    def update(self, model):
        self._update(model, update_fn=lambda average, value: self.decay * average + (1.0 - self.decay) * value)

    def set(self, model):
        self._update(model, update_fn=lambda average, value: value)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
average = ModelAverage(model, decay=0.9995)
shadow = copy.deepcopy(model).to(torch.bfloat16).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(60):
    inputs = torch.randn(64, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update(model)
    with torch.no_grad():
        for copied, weight in zip(shadow.parameters(), model.parameters(), strict=True):
            copied.copy_(weight)
    print(step, loss.item())
