"""bf16 weights, steps below half of a bf16 step, and a fused optimizer: one kernel writes all parameters."""

# expect: AMP506

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4)).to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-6, weight_decay=0.0, fused=True)
for _ in range(40):
    inputs = torch.randn(64, 16, dtype=torch.bfloat16)
    loss = nn.functional.cross_entropy(model(inputs).float(), inputs[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
