"""timm's own pieces for training: a tiny vision transformer, mixup, clipping, a moving average, its schedule."""

# expect: quiet
# needs: python:timm

import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.models import create_model
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3, dispatch_clip_grad, random_seed

random_seed(0)
model = create_model(
    "vit_tiny_patch16_224",
    pretrained=False,
    img_size=32,
    patch_size=8,
    embed_dim=32,
    depth=2,
    num_heads=2,
    num_classes=5,
    drop_path_rate=0.1,
)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
schedule = CosineLRScheduler(optimizer, t_initial=10, warmup_t=2, warmup_lr_init=1e-5)
mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=5)
criterion = SoftTargetCrossEntropy()
average = ModelEmaV3(model, decay=0.9)
images, labels = torch.randn(64, 3, 32, 32), torch.randint(5, (64,))

updates = 0
for epoch in range(5):
    model.train()
    for start in range(0, 64, 16):
        inputs, targets = mixup(images[start : start + 16], labels[start : start + 16])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        dispatch_clip_grad(model.parameters(), 1.0, mode="norm")
        optimizer.step()
        updates += 1
        average.update(model, step=updates)
        schedule.step_update(updates)
        print(epoch, loss.item().hex())
    schedule.step(epoch + 1)
    model.eval()
    with torch.inference_mode():
        print(average.module(images).argmax(1).sum().item())
print("0 of 20 steps skipped")
