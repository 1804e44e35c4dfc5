"""A shadow copy in fp16 that is computed anew each time, in a class of its own."""

# expect: AMP507 error source=shadow

import torch
from torch import nn

torch.manual_seed(0)


class Shadow:
    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.values = {name: value.detach().half() for name, value in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for name, value in model.named_parameters():
            self.values[name] = self.decay * self.values[name] + (1 - self.decay) * value.half()  # <- shadow


model = nn.Linear(8, 6)
shadow = Shadow(model, 0.9999)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (model(torch.randn(16, 8)) - 3).square().mean()
    loss.backward()
    optimizer.step()
    shadow.update(model)
