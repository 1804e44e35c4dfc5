"""A style loss multiplies two maps of 65,536 positions in fp16 and normalises afterwards."""

# expect: AMP401 error source=gram

import torch
from torch import nn


def gram(features):
    batch, channels, height, width = features.shape
    flat = features.reshape(batch, channels, height * width)
    product = flat.bmm(flat.transpose(1, 2))  # <- gram
    return product / (channels * height * width)


torch.manual_seed(0)
generator = nn.Conv2d(3, 8, 1)
optimizer = torch.optim.Adam(generator.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
picture = 2 + torch.rand(1, 3, 256, 256)
style = torch.rand(1, 8, 8)

for step in range(6):
    features = generator(picture).abs() + 1
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.l1_loss(gram(features).float(), style)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item().hex())
