"""Lightning in bf16: backward runs inside the closure that it hands to the optimizer."""

# expect: quiet
# needs: python:lightning

import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 48), nn.GELU(), nn.Dropout(0.1), nn.Linear(48, 24))
        self.head = nn.Linear(24, 5)

    def training_step(self, batch, index):
        inputs, targets = batch
        loss = nn.functional.cross_entropy(self.head(self.encoder(inputs)), targets)
        print(index, loss.item().hex())
        return loss

    def validation_step(self, batch, index):
        inputs, targets = batch
        self.log("hits", (self.head(self.encoder(inputs)).argmax(1) == targets).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=2e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=20)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


lightning.seed_everything(0, verbose=False)
data = TensorDataset(torch.randn(320, 16), torch.randint(5, (320,)))
trainer = lightning.Trainer(
    accelerator="cpu",
    precision="bf16-mixed",
    max_epochs=2,
    accumulate_grad_batches=2,
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Classifier(), DataLoader(data, batch_size=16, shuffle=True), DataLoader(data, batch_size=64))
print("0 of 20 steps skipped")
