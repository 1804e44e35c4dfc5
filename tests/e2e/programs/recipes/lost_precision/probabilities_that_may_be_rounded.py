"""Half probabilities whose sum nobody needs exactly: attention, the nucleus of a sampler, multinomial, a loose check,
Categorical with logits, rows that are normalised anew."""

# expect: quiet

import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"attention": nn.MultiheadAttention(16, 2, batch_first=True), "head": nn.Linear(16, 40)})
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(4, 12, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attended, weights = model["attention"](x, x, x, need_weights=True)
        logits = model["head"](attended)
        p = logits.softmax(-1)
    assert torch.allclose(p.sum(-1), torch.ones((), dtype=p.dtype), atol=5e-2)
    with torch.no_grad():
        ordered, order = p.sort(descending=True)
        nucleus = ordered.masked_fill(ordered.cumsum(-1) - ordered > 0.9, 0)
        nucleus = nucleus / nucleus.sum(-1, keepdim=True)
        torch.multinomial(nucleus.flatten(0, 1), 1)
        action = torch.distributions.Categorical(logits=logits.float()).sample()
    loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), action.flatten()) + weights.float().sum() * 0
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
