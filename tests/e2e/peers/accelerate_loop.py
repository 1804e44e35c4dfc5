"""accelerate, started by its launcher: bf16, accumulation by its context, clipping through the accelerator,
gathering."""

# expect: quiet
# needs: python:accelerate
# launch: accelerate.commands.launch --cpu --num_processes 1 --num_machines 1 --mixed_precision bf16 --dynamo_backend no

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(180, 12), torch.randint(4, (180,))), batch_size=10, shuffle=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

for epoch in range(3):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        print(epoch, accelerator.gather(loss.detach()).item().hex())
print("0 of 15 steps skipped")
