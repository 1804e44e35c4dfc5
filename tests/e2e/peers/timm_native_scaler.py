"""timm's NativeScaler with its clipping modes around a small convolutional network; its scaler asks for CUDA and
disables itself on a CPU, with a warning."""

# expect: quiet
# needs: python:timm

import torch
from timm.models import create_model
from timm.optim import create_optimizer_v2
from timm.utils import NativeScaler, random_seed

random_seed(0)
model = create_model("resnet10t", pretrained=False, num_classes=4)
optimizer = create_optimizer_v2(model, opt="sgd", lr=0.05, momentum=0.9)
scaler = NativeScaler()
images, labels = torch.randn(32, 3, 32, 32), torch.randint(4, (32,))
for step in range(10):
    rows = torch.randint(32, (8,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(model(images[rows]), labels[rows])
    optimizer.zero_grad()
    mode = ("norm", "value", "agc")[step % 3]
    scaler(loss, optimizer, clip_grad=0.5, clip_mode=mode, parameters=model.parameters(), create_graph=False)
    print(loss.item().hex())
print("0 of 10 steps skipped")
