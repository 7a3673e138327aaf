"""The table of known models: what a cell says, and that sizes are those of the models."""

from __future__ import annotations

import datetime
from types import ModuleType

import pytest

from driple.jobs.load import JobOptions, load_job
from scripts.pages.known_models import MODELS, KnownModel
from scripts.pages.models import GPUS, Cell, cell_words, cells_of, page_text


def cell(fits: str, rate: float = 1234.0, gib: float = 30.0) -> Cell:
    return Cell(
        samples_per_s=rate, needed_bytes=gib * 2**30, fits=fits, median_pct=10.0, p90_pct=40.0
    )


def test_thirty_models_and_twenty_gpus_of_different_names() -> None:
    assert len({model.name for model in MODELS}) == 30
    assert len(set(GPUS)) == 20


@pytest.mark.parametrize(
    ("fits", "words"),
    [
        ("surely", "1,230"), ("yes", "1,230 ?"), ("likely not", "*30 GiB ?*"), ("no", "*30 GiB*"),
        ("unknown", "1,230 ?"),
    ],
)  # fmt: skip
def test_a_cell_is_a_rate_or_the_memory_that_is_missing(fits: str, words: str) -> None:
    assert cell_words(cell(fits)) == words


def test_the_page_has_a_row_in_both_tables_with_its_errors() -> None:
    models = MODELS[:2]
    rows = [[cell("surely")] * 20, [cell("no")] * 20]
    text = page_text(models, rows, GPUS, datetime.date(2026, 11, 29))
    assert text.count("| ResNet-18 | 32 |") == 2
    assert text.count("10, 40 %") == 4
    assert "made on 2026-11-29" in text
    assert "{" not in text


def test_a_small_model_is_predicted(program: ModuleType) -> None:
    """A tiny config: it fits everywhere, and a faster GPU trains it no slower."""
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2,
              "n_embd": 64, "n_head": 2, "vocab_size": 1000}  # fmt: skip
    tiny = KnownModel(name="tiny", config=config, batch_size=2, seq_len=32)
    slow, fast = cells_of(tiny, ["T4", "A100"])
    assert (slow.fits, fast.fits) == ("surely", "surely")
    assert slow.samples_per_s and fast.samples_per_s
    assert slow.needed_bytes


@pytest.mark.parametrize(("name", "millions"), [("ResNet-50", 25.6), ("ViT-B/16", 86.6)])
def test_models_of_timm_have_their_parameters(name: str, millions: float) -> None:
    pytest.importorskip("timm")
    (model,) = [one for one in MODELS if one.name == name]
    job = load_job(f"timm:{model.timm}", JobOptions(batch_size=1))
    assert job.graph.parameters.elements.sum() / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize(
    ("name", "millions"), [("BERT-base", 109.5), ("GPT-2", 124.4), ("T5-small", 60.5)]
)
def test_configs_have_their_models_parameters(
    name: str, millions: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("transformers")
    import json

    (model,) = [one for one in MODELS if one.name == name]
    folder = tmp_path_factory.mktemp("config")
    (folder / "config.json").write_text(json.dumps(model.config))
    job = load_job(f"hf:{folder}", JobOptions(batch_size=1, seq_len=16))
    assert job.graph.parameters.elements.sum() / 1e6 == pytest.approx(millions, rel=0.01)
