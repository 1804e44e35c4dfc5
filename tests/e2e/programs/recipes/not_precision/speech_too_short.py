"""CTC with a transcript that is longer than the subsampled audio, on bf16 logits, in a trainer class."""

# expect: AMP607 error source=ctc precision_fault=false

import torch
from torch import nn

torch.manual_seed(0)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 12)
        self.loss = nn.CTCLoss()

    def forward(self, audio, lengths, text, text_lengths):
        hidden, _ = self.rnn(audio)
        logp = self.out(hidden[:, ::2]).float().log_softmax(-1).transpose(0, 1)
        return self.loss(logp, text, lengths // 2, text_lengths)  # <- ctc


model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(6):
    lengths = torch.tensor([40, 40, 12 if step >= 3 else 40])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(3, 40, 8), lengths, torch.randint(1, 12, (3, 10)), torch.full((3,), 10))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
