"""LLaVA-13B v0: Vicuna-13B, a frozen CLIP ViT-L/14 and a projection; 2,048 tokens.

256 of the tokens are patches of an image of 224 x 224 pixels.
"""

import torch
from torch import nn
from transformers import CLIPVisionConfig, CLIPVisionModel, LlamaConfig, LlamaForCausalLM


class Llava(nn.Module):
    """Frozen tower of images, trained projection and language model."""

    def __init__(self):
        super().__init__()
        self.language = LlamaForCausalLM(
            LlamaConfig(
                num_hidden_layers=40,
                hidden_size=5120,
                num_attention_heads=40,
                intermediate_size=13824,
                vocab_size=32003,
                max_position_embeddings=2048,
                use_cache=False,
            )
        )
        tower = CLIPVisionConfig(
            num_hidden_layers=24,
            hidden_size=1024,
            num_attention_heads=16,
            intermediate_size=4096,
            patch_size=14,
            image_size=224,
        )
        self.tower = CLIPVisionModel(tower).requires_grad_(False)
        self.projection = nn.Linear(1024, 5120)
        self.language.gradient_checkpointing_enable()

    def forward(self, tokens, images, labels):
        """Loss of a batch."""
        with torch.no_grad():
            seen = self.tower(images).last_hidden_state[:, 1:]
        words = self.language.get_input_embeddings()(tokens)
        embedded = torch.cat([self.projection(seen), words], 1)
        return self.language(inputs_embeds=embedded, labels=labels).loss


def build_with_batch():
    """What `driple predict FILE:build_with_batch` reads."""
    tokens = torch.zeros(1, 2048 - 256, dtype=torch.long)
    labels = torch.zeros(1, 2048, dtype=torch.long)
    return Llava(), {"tokens": tokens, "images": torch.zeros(1, 3, 224, 224), "labels": labels}
