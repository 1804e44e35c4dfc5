"""No mixed precision at all, with a sum of hundreds as the loss and gradient clipping."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(64, 8), nn.Linear(4, 64)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
images = torch.rand(256, 64)
for _step in range(40):
    batch = images[torch.randint(256, (64,))]
    mean, log_variance = encoder(batch).chunk(2, 1)
    code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
    loss = nn.functional.binary_cross_entropy_with_logits(decoder(code), batch, reduction="sum")
    loss = loss - 0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(encoder.parameters(), 100.0)
    optimizer.step()
    print(loss.item().hex())
print("0 of 40 steps skipped")
