"""A small GPT-2 of transformers, as a folder with its config."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_gpt"]


def write_gpt(folder: Path, *, layers: int = 2, width: int = 64) -> str:
    """Write the config; returns the JOB that names it."""
    import transformers

    config = transformers.GPT2Config(
        n_layer=layers, n_embd=width, n_head=4, n_positions=256, vocab_size=2000
    )
    config.save_pretrained(folder / "gpt")
    return f"hf:{folder / 'gpt'}"
