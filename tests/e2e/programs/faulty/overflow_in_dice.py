"""The dice loss of a whole mask is summed in fp16: 262,144 terms."""

# expect: AMP402 error op=aten::sum source=intersection

import torch
from torch import nn


class DiceLoss(nn.Module):
    def forward(self, logits, target):
        probability = torch.sigmoid(logits.half())
        target = target.half()
        intersection = (probability * target).sum()  # <- intersection
        total = probability.sum() + target.sum()
        return 1 - (2 * intersection + 1) / (total + 1)


torch.manual_seed(0)
net = nn.Conv2d(1, 1, 3, padding=1)
criterion = DiceLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
image = torch.rand(1, 1, 512, 512)
mask = torch.ones(1, 1, 512, 512)
for step in range(6):
    optimizer.zero_grad()
    loss = criterion(net(image), mask)
    loss.float().backward()
    optimizer.step()
    print(step, loss.item().hex())
