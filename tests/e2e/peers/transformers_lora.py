"""Hugging Face Trainer with LoRA from peft: the base is frozen, matrices B start at zero."""

# expect: quiet
# needs: python:transformers python:peft

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback


class Text(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        tokens = (torch.arange(24) + index) % 50
        return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **others):
        if "loss" in logs:
            print(state.global_step, float(logs["loss"]).hex())


torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    max_position_embeddings=32,
)
model = get_peft_model(
    LlamaForCausalLM(config),
    LoraConfig(r=4, lora_alpha=8, lora_dropout=0.05, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=8,
        max_steps=15,
        learning_rate=1e-2,
        bf16=True,
        use_cpu=True,
        logging_steps=1,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        seed=0,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Text(), callbacks=[PrintLosses()])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
print("0 of 15 steps skipped")
