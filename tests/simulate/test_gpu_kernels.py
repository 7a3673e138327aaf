"""Shares of a GPU's peaks from a network whose weights are set by hand, and times of kernels.

The limits of the shares are 0.01 and 2.5 of the FLOP/s, 1.5 of the bytes/s; without weights they
are 0.6 and 0.8. A share whose logarithm comes to a limit is bent to 2 ** 0.3 from it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from driple.errors import ConfigError
from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.gpu_kernels import (
    CHANNEL_RATES,
    INPUTS,
    LIBRARIES,
    GpuKernels,
    Library,
    Runtime,
    channel_rows,
    kernel_inputs,
    kernel_seconds,
    shares_with,
    smooth_max,
)
from driple.simulate.op_facts import FACTS, OpFacts, op_facts

FloatArray = npt.NDArray[np.float64]
FLOAT32, FLOAT16, BFLOAT16 = 1, 19, 14
MOST = np.array([2.5, 1.5])
TO_MOST = np.log(MOST / np.array([0.6, 0.8]))  # from the usual shares
AT_MOST = (MOST * 2**-0.3).tolist()
USUAL = [0.5985, 0.7727]  # 0.6 and 0.8, bent a little by the upper limits


def kernels(**arrays: FloatArray) -> GpuKernels:
    """All weights 0 but those given, two units in a layer."""
    none = np.zeros
    weights = {
        "linear": none((len(INPUTS), 2)), "hidden": none((len(INPUTS), 2)), "hidden_bias": none(2),
        "second": none((2, 2)), "second_bias": none(2), "out": none((2, 2)),
        "kind_offset": none((2, 2)), "kind_last_offset": none((2, 2)),
        "channel_rates": np.array([1e9, 2e9, 3e9, 4e9]),
    }  # fmt: skip
    return GpuKernels(
        kinds=("add", "conv"), inputs=INPUTS, sharpness=2.0, start_s=1e-6, update_share=0.5,
        **{**weights, **arrays},
    )  # fmt: skip


def facts_of(
    *kinds: str, dtype: int = FLOAT32, last: bool = False, shape: tuple[int, ...] = (8, 8, 4)
) -> OpFacts:
    """Ops that read and write a tensor of a type."""
    tensor, numbers = Tensor(shape, dtype), (CHANNELS_LAST,) if last else ()
    ops = [OpSignature(kind, (tensor, tensor), (tensor,), numbers) for kind in kinds]
    return op_facts(ops, [None] * len(ops))


def row(name: str, values: FloatArray, width: int = 2) -> FloatArray:
    """Weights of one input."""
    array = np.zeros((len(INPUTS), width))
    array[INPUTS.index(name)] = values
    return array


def test_without_weights_shares_are_the_usual_ones() -> None:
    shares = kernels().shares(facts_of("add", "mul"), Runtime())
    np.testing.assert_allclose(shares, [USUAL] * 2, rtol=1e-3)


def test_shares_end_at_their_limits() -> None:
    for sign, limits in ((1, [2.5, 1.5]), (-1, [0.01, 0.01])):
        array = row("element_bytes", np.array([sign * 100.0] * 2))
        shares = kernels(linear=array).shares(facts_of("add"), Runtime())
        assert shares[0].tolist() == pytest.approx(limits, rel=1e-6)
    to_least = np.log(0.01 / np.array([0.6, 0.8]))
    shares = kernels(linear=row("element_bytes", to_least)).shares(facts_of("add"), Runtime())
    assert shares[0].tolist() == pytest.approx([0.01 * 2**0.3] * 2, rel=1e-5)


def test_what_is_linear_in_an_input_counts_where_the_input_is_there() -> None:
    model = kernels(linear=row("half", TO_MOST))
    assert model.shares(facts_of("add", dtype=FLOAT16), Runtime())[0].tolist() == pytest.approx(
        AT_MOST, rel=1e-6
    )
    plain = model.shares(facts_of("add"), Runtime())
    np.testing.assert_allclose(plain[0], USUAL, rtol=1e-3)


def test_offsets_are_those_of_the_kind() -> None:
    """A kind that was not fitted has none."""
    offset = np.array([TO_MOST, -TO_MOST])
    shares = kernels(kind_offset=offset).shares(facts_of("add", "conv", "mul"), Runtime())
    assert shares[0].tolist() == pytest.approx(AT_MOST, rel=1e-6)
    np.testing.assert_allclose(shares[1], [0.36 / 2.5, 0.64 / 1.5], rtol=0.01)
    np.testing.assert_allclose(shares[2], USUAL, rtol=1e-3)
    assert kernels().offsets(["conv", "mul", "add"]).tolist() == [1, 2, 0]


def test_offsets_of_channels_last_count_there_alone() -> None:
    model = kernels(kind_last_offset=np.array([TO_MOST, -TO_MOST]))
    last = model.shares(facts_of("add", "mul", last=True), Runtime())
    assert last[0].tolist() == pytest.approx(AT_MOST, rel=1e-6)
    apart = model.shares(facts_of("add"), Runtime())
    np.testing.assert_allclose([last[1], apart[0]], [USUAL] * 2, rtol=1e-3)


def test_two_layers_lead_from_inputs_to_shares() -> None:
    """Steep units: 1 for half precision and -1 for others, in both layers; half of the way each."""
    model = kernels(
        hidden=row("half", np.array([2000.0, 2000.0])),
        hidden_bias=np.array([-1000.0, -1000.0]),
        second=1000.0 * np.eye(2),
        out=np.array([TO_MOST, TO_MOST]) / 2,
    )
    half = model.shares(facts_of("add", dtype=FLOAT16), Runtime())
    assert half[0].tolist() == pytest.approx(AT_MOST, rel=1e-6)
    single = model.shares(facts_of("add"), Runtime())
    np.testing.assert_allclose(single[0], [0.36 / 2.5, 0.64 / 1.5], rtol=0.01)
    # A second bias that outweighs the first layer.
    biased = replace(model, second_bias=np.array([5000.0, 5000.0]))
    shares = biased.shares(facts_of("add"), Runtime())
    assert shares[0].tolist() == pytest.approx(AT_MOST, rel=1e-6)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_compiler_takes_the_better_of_its_kernel_and_the_other(sign: int) -> None:
    model = kernels(linear=row("compiled", sign * TO_MOST))
    eager = model.shares(facts_of("add"), Runtime())
    compiled = model.shares(facts_of("add"), Runtime(compiled=True))
    np.testing.assert_allclose(eager[0], USUAL, rtol=1e-3)
    expected = AT_MOST if sign > 0 else eager[0].tolist()
    assert compiled[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_weights_must_fit_together() -> None:
    good = kernels()
    assert replace(good, sharpness=1.0, start_s=0.0).start_s == 0.0
    with pytest.raises(ConfigError, match="sharpness"):
        replace(good, sharpness=0.99)
    with pytest.raises(ConfigError, match="start_s"):
        replace(good, start_s=-1e-9)
    assert replace(good, update_share=0.1).update_share == 0.1
    with pytest.raises(ConfigError, match="update_share"):
        replace(good, update_share=0.0)
    with pytest.raises(ConfigError, match="other inputs"):
        replace(good, inputs=INPUTS[1:])
    for name in ("linear", "hidden", "hidden_bias", "second", "second_bias", "out", "kind_offset",
                 "kind_last_offset", "channel_rates"):  # fmt: skip
        array = getattr(good, name)
        for odd in (array[:-1], np.full(array.shape, np.inf), np.full(array.shape, np.nan)):
            with pytest.raises(ConfigError, match="of the calibration's kernels must be finite"):
                replace(good, **{name: odd})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"hidden of the .* shape \[\d+, 0\]"):
        replace(good, hidden_bias=np.zeros((2, 1)))
    empty = np.zeros((len(INPUTS), 0))
    with pytest.raises(ConfigError, match=r"hidden_bias of the .* shape \[0\]"):
        replace(good, hidden_bias=np.array(0.0), hidden=empty)


def test_a_runtime_is_the_present_pytorch_without_a_compiler() -> None:
    assert Runtime() == Runtime(library="torch2", compiled=False, cuda_graphs=False)
    for library in LIBRARIES:
        assert Runtime(library).library == library  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("memory", "gain", "share"),
    [
        (0.5, 4.0, 0.25),  # half of the way: 4 ** -0.5
        (1.0, 32.0, 0.5),  # a fifth of the way: 32 ** -0.2
        (0.5, 0.25, 1.0),
        (0.7, 1.0, 0.7),
    ],
)
def test_a_kernel_follows_another_memory_by_the_share_that_it_reaches(
    memory: float, gain: float, share: float
) -> None:
    moved = shares_with(np.array([[0.3, memory], [0.4, memory]]), gain)
    np.testing.assert_allclose(moved, [[0.3, share], [0.4, share]])


def test_how_kernels_divide_may_be_stated() -> None:
    """Sharply, none of those below the share follows and all of those above it do."""
    shares = np.array([[0.3, 0.1], [0.3, 0.4]])
    moved = shares_with(shares, 2.0, slow_share=0.2, power=100.0)
    np.testing.assert_allclose(moved, [[0.3, 0.05], [0.3, 0.4]])
    halfway = shares_with(shares, 4.0, slow_share=0.1, power=1.0)
    np.testing.assert_allclose(halfway, [[0.3, 0.05], [0.3, 0.4 * 4**-0.2]])


def test_blocks_of_channels_go_by_direction_and_library() -> None:
    """CuDNN forward, PyTorch's own kernel (of bfloat16) forward, and both backward."""
    names = list(CHANNEL_RATES)
    rows = [
        channel_rows(facts_of(kind, dtype=dtype, shape=(8, 64, 4)))[0]
        for kind in ("batch_norm", "batch_norm_gradient")
        for dtype in (FLOAT32, BFLOAT16)
    ]
    assert [names[i] for i in rows] == ["cudnn", "native", "cudnn_gradient", "native_gradient"]
    assert channel_rows(facts_of("add", "softmax")).tolist() == [0, 0]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("compiled", [False, True])
def test_inputs_that_say_what_runs_the_step(library: Library, compiled: bool) -> None:
    image = Tensor((8, 64, 8, 8), FLOAT32)

    def conv(kind: str, sides: tuple[int, int], groups: int) -> OpSignature:
        numbers = (CHANNELS_LAST, ("groups", (groups,)))
        return OpSignature(kind, (image, Tensor((3, 3, *sides), FLOAT32)), (image,), numbers)

    ops = [
        conv("conv", (16, 64), 4), conv("depthwise_conv", (64, 1), 64), conv("conv", (64, 64), 1),
        OpSignature("attention", (image,), (image,)),
        OpSignature("layer_norm_gradient", (image,), (image,)),
    ]  # fmt: skip
    facts = op_facts(ops, [None] * len(ops))
    inputs = kernel_inputs(facts, Runtime(library, compiled=compiled))
    assert inputs.shape == (5, len(INPUTS))
    np.testing.assert_array_equal(inputs[:, : len(FACTS)], facts.values)
    first = float(library == "torch1")
    expected = {
        # Four groups are three quarters of a grouped convolution.
        "grouped_convolution": [0.75, 0, 0, 0, 0], "convolution": [0.25, 0, 1, 0, 0],
        "depthwise_convolution": [0, 1, 0, 0, 0],
        "attention": [0, 0, 0, 1, 0], "norm_gradient": [0, 0, 0, 0, 1], "map": [0] * 5,
        "compiled": [float(compiled)] * 5, "torch1": [first] * 5,
        "tensorflow": [float(library == "tensorflow")] * 5,
        "last_torch1": [first, first, first, 0, 0],
        "grouped_torch1": [0.75 * first, 0, 0, 0, 0],
        "depthwise_torch1": [0, first, 0, 0, 0],
        "first_flash": [0, 0, 0, float(library in {"torch1", "torch2.1"}), 0],
        "first_layer_norm_gradient":
            [0, 0, 0, 0, float(library in {"torch1", "torch2.1", "torch2.7"})],
    }  # fmt: skip
    for name, column in expected.items():
        assert inputs[:, INPUTS.index(name)].tolist() == pytest.approx(column), name


def test_seconds_of_kernels_by_right_triangles() -> None:
    """Compute 3 and memory 4 are 5, a channel 7 more, turns 5 make it 13, and a start of 1."""
    columns = [np.array([value, 0.0]) for value in (3.0, 4.0, 1.0, 7.0, 5.0)]
    seconds = kernel_seconds(*columns, sharpness=2.0, xp=np)
    assert seconds.tolist() == pytest.approx([14.0, 0.0])


@pytest.mark.parametrize(
    ("first", "other", "sharpness", "larger"),
    [
        (3.0, 4.0, 2.0, 5.0), (4.0, 3.0, 2.0, 5.0), (3.0, 4.0, 1.0, 7.0),
        (1.0, 1.0, 3.0, 2 ** (1 / 3)), (3e-6, 4e-6, 2.0, 5e-6), (0.0, 2.0, 2.5, 2.0),
    ],
)  # fmt: skip
def test_two_times_meet_as_the_sides_of_a_triangle(
    first: float, other: float, sharpness: float, larger: float
) -> None:
    actual = smooth_max(np.array([first]), np.array([other]), sharpness, np)
    assert actual[0] == pytest.approx(larger, rel=1e-6)
