"""The vocabulary of op kinds: one family each, names that follow one rule."""

from __future__ import annotations

import re

import pytest

from driple.errors import GraphError
from driple.graph.opkind import FAMILIES, KINDS, PRODUCT_FAMILIES, family_of


def test_every_kind_is_in_one_family_and_every_family_has_kinds() -> None:
    families = {family_of(kind) for kind in KINDS}
    assert families == set(FAMILIES)


def test_kinds_are_lower_case_words() -> None:
    assert all(re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", kind) for kind in KINDS)


def test_a_gradient_is_named_after_an_op_of_the_forward_pass() -> None:
    """But for those with several gradients, which say by what (`conv_input_gradient`)."""
    ends = r"_(input_|filter_|range_|channel_|image_|box_|scatter_|second_)?gradient$"
    forward = {re.sub(ends, "", kind) for kind in KINDS if kind.endswith("_gradient")}
    own = {"bias", "tile", "pad", "take", "fractional_avg_pool", "fractional_max_pool",
           "random_gamma", "sparse_fill_empty_rows", "list", "accumulate", "other_input",
           "other_filter", "other"}  # fmt: skip
    assert forward - own <= KINDS


def test_products_are_convolutions_and_all_that_is_mostly_matrix_products() -> None:
    for kind in ("conv", "depthwise_conv_filter_gradient", "einsum", "attention_gradient", "lstm"):
        assert family_of(kind) in PRODUCT_FAMILIES
    for kind in ("add", "embedding", "layer_norm", "max_pool", "view"):
        assert family_of(kind) not in PRODUCT_FAMILIES


def test_a_name_of_a_framework_is_refused() -> None:
    with pytest.raises(GraphError, match="'Conv2D' is no kind of op"):
        family_of("Conv2D")
