"""Of two optimizers the gradients of one are cleared twice, those of the other never; bf16, no scaler."""

# expect: AMP221 error source=second precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Sequential(nn.Linear(12, 32), nn.GELU()), nn.Linear(32, 3)
optimizer_a = torch.optim.SGD(encoder.parameters(), lr=1e-3)
optimizer_b = torch.optim.SGD(head.parameters(), lr=1e-3)
inputs, targets = torch.randn(64, 12), torch.randint(3, (64,))

for step in range(25):
    optimizer_a.zero_grad()
    optimizer_a.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(head(encoder(inputs)).float(), targets)
    loss.backward()
    optimizer_a.step()
    optimizer_b.step()  # <- second
    print(step, loss.item())
