"""Hugging Face Trainer: a tiny GPT-2 of random weights, bf16, accumulation, gradient checkpointing, clipping, a
schedule."""

# expect: quiet
# needs: python:transformers

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback


class Text(Dataset):
    def __len__(self):
        return 128

    def __getitem__(self, index):
        tokens = (torch.arange(32) * (index % 7 + 1)) % 61
        return {"input_ids": tokens, "labels": tokens}


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **others):
        if "loss" in logs:
            print(state.global_step, float(logs["loss"]).hex(), float(logs["grad_norm"]).hex())


config = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            gradient_checkpointing=True,
            max_steps=20,
            learning_rate=1e-3,
            warmup_steps=4,
            max_grad_norm=1.0,
            bf16=True,
            use_cpu=True,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            seed=0,
        ),
        train_dataset=Text(),
        callbacks=[PrintLosses()],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
print("0 of 20 steps skipped")
