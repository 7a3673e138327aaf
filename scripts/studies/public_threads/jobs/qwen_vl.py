"""Qwen-VL-Chat with LoRA, as finetune.py of 2023-09-12 trains it: bfloat16, a frozen ViT.

`modules_to_save` of that date trains the word embedding and the head beside the adapters. The
language model is Qwen-7B, which is Qwen2's architecture with these sizes; 256 of the 2,048 tokens
are an image of 448 x 448 pixels. Needs peft.
"""

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, Qwen2Config, Qwen2ForCausalLM


class QwenVL(nn.Module):
    """Frozen ViT and language model with adapters."""

    def __init__(self):
        super().__init__()
        language = Qwen2ForCausalLM(
            Qwen2Config(
                num_hidden_layers=32,
                hidden_size=4096,
                num_attention_heads=32,
                num_key_value_heads=32,
                intermediate_size=11008,
                vocab_size=151936,
                max_position_embeddings=8192,
                tie_word_embeddings=False,
                use_cache=False,
            )
        ).bfloat16()
        visual = CLIPVisionModel(
            CLIPVisionConfig(
                num_hidden_layers=48,
                hidden_size=1664,
                num_attention_heads=16,
                intermediate_size=8192,
                patch_size=14,
                image_size=448,
            )
        )
        self.visual = visual.bfloat16().requires_grad_(False)
        self.resample = nn.Linear(1664, 4096, bias=False, dtype=torch.bfloat16).requires_grad_(
            False
        )
        adapters = LoraConfig(
            r=64,
            lora_alpha=16,
            lora_dropout=0.05,
            task_type="CAUSAL_LM",
            target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj"],
            modules_to_save=["embed_tokens", "lm_head"],
        )
        self.language = get_peft_model(language, adapters, autocast_adapter_dtype=False)
        self.language.gradient_checkpointing_enable()

    def forward(self, tokens, images, labels):
        """Loss of a batch."""
        with torch.no_grad():
            seen = self.resample(self.visual(images.bfloat16()).last_hidden_state[:, 1:257])
        words = self.language.get_input_embeddings()(tokens)
        return self.language(inputs_embeds=torch.cat([seen, words], 1), labels=labels).loss


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    tokens = torch.zeros(1, 2048 - 256, dtype=torch.long)
    labels = torch.zeros(1, 2048, dtype=torch.long)
    return QwenVL(), {"tokens": tokens, "images": torch.zeros(1, 3, 448, 448), "labels": labels}
