"""Models and batches that were once refused: detection, hybrids, speech, objects."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from driple.errors import DripleError, GraphError
from driple.graph.step_facts import TensorRole
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.hf_config import read_hf_config
from driple.jobs.own_request import OwnModel
from driple.jobs.pytorch.huggingface import hugging_face_step
from driple.jobs.pytorch.own_model import step_of_own_model
from driple.jobs.unreadable import refuse_foreign

CASES = Path(__file__).parents[1] / "data" / "cases"
STEP = StepOptions(optimizer="adamw")


def own(reference: str, **values: Any) -> Any:
    return step_of_own_model(OwnModel(model=f"{CASES}/{reference}", **values))


def hugging_face(place: Path | str, **sizes: Any) -> Any:
    given = {"batch_size": 2, "seq_len": None, "input_shape": None, **sizes}
    return hugging_face_step(read_hf_config(str(place)), step=STEP, **given)


def config(folder: Path, kind: str, **values: Any) -> Path:
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **values}))
    return folder


@pytest.fixture(scope="module")
def detection() -> Any:
    return own("det.py:build_model")


def test_detection_is_read_with_its_images_and_boxes(detection: Any) -> None:
    """Torchvision publishes 41,755,286 parameters with frozen norms; here these train."""
    assert (detection.batch_size, detection.input_shape) == (2, (3, 800, 1333))
    assert int(detection.graph.parameters.elements.sum()) == 41_755_286 + 53_120
    assert any(one.code == "decided_by_values" for one in detection.assumptions)


def test_detection_trains_its_head_on_512_regions_of_an_image(detection: Any) -> None:
    """The sampler's masks choose as many regions as were written into them, not all."""
    graph = detection.graph
    products = [
        graph.signatures[graph.signature_of[node]].inputs[0].shape
        for node, kind in enumerate(graph.op_types)
        if kind == "aten::addmm"
    ]
    assert {shape[0] for shape in products} == {2 * 512}


@pytest.mark.parametrize("name", ["as_dataclass", "as_namedtuple", "as_object", "as_pyg"])
def test_a_batch_that_is_an_object_is_handed_on_whole(name: str) -> None:
    """The model reads its attributes; a linear layer of 16 by 4 has 68 parameters."""
    job = own(f"batch_objects.py:{name}")
    assert job.batch_size == 8
    assert int(job.graph.parameters.elements.sum()) == 68


def test_a_hybrid_needs_no_values_of_the_mask() -> None:
    """LFM2 asks whether its attention mask is all ones; whole sequences have no padding."""
    job = hugging_face(CASES / "hf-lfm2-tiny", seq_len=64)
    assert (job.batch_size, job.seq_len) == (2, 64)
    assert "aten::convolution" in job.graph.op_types


def test_speech_with_ctc_is_read() -> None:
    """wav2vec2's kin compare their labels with the vocabulary, and choose those that count."""
    job = hugging_face(CASES / "hf-wav2vec2-tiny", batch_size=8)
    assert job.batch_size == 8
    assert "aten::_ctc_loss" in job.graph.op_types


def test_wav2vec2_base_has_its_published_parameters(tmp_path: Path) -> None:
    """94.4 million, with the head for 32 letters."""
    job = hugging_face(config(tmp_path, "wav2vec2", architectures=["Wav2Vec2ForCTC"]))
    assert int(job.graph.parameters.elements.sum()) == pytest.approx(94.4e6, rel=1e-3)


def test_detr_is_read_with_boxes(tmp_path: Path) -> None:
    """Its matching of queries and boxes by costs is replaced by one of the same size."""
    place = config(
        tmp_path, "conditional_detr", encoder_layers=1, decoder_layers=1, num_queries=20,
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config={"model_type": "resnet", "out_features": ["stage4"]},
    )  # fmt: skip
    job = hugging_face(place, input_shape=(3, 128, 128))
    assert job.input_shape == (3, 128, 128)


def test_a_file_without_a_name_offers_a_class_that_can_be_built() -> None:
    """`loss_fn` and `Block` need arguments; `UNet` has defaults for all of its own."""
    with pytest.raises(GraphError) as refused:
        refuse_foreign(CASES / "unet.py")
    assert "unet.py:UNet;" in str(refused.value)
    assert "loss_fn" not in str(refused.value)
    assert "Block" not in str(refused.value)


class Choosy(nn.Module):
    """Looks at values in code of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        output = self.layer(values)
        return output[output > 0].sum()


def test_code_of_a_user_that_chooses_by_values_is_still_refused() -> None:
    """Only known libraries look at values in known ways."""
    with torch.device("meta"):
        model, batch = Choosy(), torch.zeros(2, 4)
    with pytest.raises(DripleError, match="needs values of tensors"):
        traced_step(model, batch, None, StepOptions())


class Recommender(nn.Module):
    """A table of 100,000 rows of which a batch of 4 x 3 reads 12."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(100_000, 16, sparse=sparse)
        self.head = nn.Linear(16, 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(rows)).mean()


def recommender(*, sparse: bool) -> Any:
    with torch.device("meta"):
        model, batch = Recommender(sparse=sparse), torch.zeros(4, 3, dtype=torch.int64)
    return traced_step(model, batch, None, StepOptions(optimizer="adagrad"))


def test_of_a_sparse_gradient_the_rows_travel_that_a_batch_reads() -> None:
    """12 rows of 16 numbers, with the number of each row; a dense gradient is the whole table."""
    sparse, dense = recommender(sparse=True), recommender(sparse=False)
    head = (16 + 1) * 4
    assert int(sparse.traffic.sent_bytes.sum()) == 12 * (16 * 4 + 8) + head
    assert int(dense.traffic.sent_bytes.sum()) == 100_000 * 16 * 4 + head
    # The optimizer touches these rows alone, and keeps states of the whole table.
    assert sparse.update.moved_bytes < dense.update.moved_bytes / 1000
    assert sparse.update.state_bytes == dense.update.state_bytes


@pytest.mark.parametrize("kind", ["mamba", "jamba"])
def test_a_few_turns_of_a_scan_stand_for_all(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each op runs as often, and writes as many bytes, as where all turns are followed."""
    from driple.graph.torch import turns

    place = config(
        tmp_path, kind, hidden_size=64, intermediate_size=64, num_hidden_layers=1, vocab_size=100,
        num_attention_heads=4, num_key_value_heads=2,
    )  # fmt: skip

    def counted() -> tuple[int, Counter[str], int]:
        graph = hugging_face(place, seq_len=40).graph
        runs: Counter[str] = Counter()
        for name, many in zip(graph.op_types, graph.executions.tolist(), strict=True):
            runs[name] += many
        kept = graph.lifetimes.nbytes[graph.lifetimes.roles == TensorRole.ACTIVATION]
        moved = int((graph.executions * graph.tensor_bytes).sum())
        return len(graph.op_types), runs, int(kept.sum()) + moved

    few = counted()
    monkeypatch.setattr(turns, "_FEWEST", 10**9)
    everything = counted()
    assert few[0] < everything[0] / 2
    assert few[1:] == everything[1:]


def test_infinity_in_a_config_is_read(tmp_path: Path) -> None:
    """Transformers writes the time limits of Mamba 2 so."""
    place = config(tmp_path, "mamba2", time_step_limit=[0.0, float("inf")])
    assert read_hf_config(str(place)).values["time_step_limit"] == [0.0, float("inf")]


def test_a_list_of_positions_is_no_loop_over_tokens(tmp_path: Path) -> None:
    """CPM-Ant lists the positions of its tokens; only a `for` statement is cut short."""
    place = config(
        tmp_path, "cpmant", hidden_size=64, num_attention_heads=4, dim_head=16, dim_ff=64,
        num_hidden_layers=1, vocab_size=100, prompt_length=8,
    )  # fmt: skip
    assert hugging_face(place, seq_len=32).seq_len == 32
