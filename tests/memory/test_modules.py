"""Memory by module: no byte is lost, and modules that differ by numbers alone are one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from driple.memory.modules import ModuleMemory, modules_joined, most_words
from driple.memory.timeline import ModuleBytes

ROWS = st.lists(
    st.builds(
        ModuleBytes,
        module=st.sampled_from(["", "a", "layers.0.mlp", "layers.1.mlp.up", "layers.11.attn",
                                "conv1.weight", "net/block_2/x", "net/2/x", "0.1.2"]),
        kind=st.sampled_from(["parameters", "activations"]),
        nbytes=st.integers(1, 10**12),
    ),
    max_size=12,
)  # fmt: skip


def row(module: str, nbytes: int, kind: str = "activations") -> ModuleBytes:
    return ModuleBytes(module=module, kind=kind, nbytes=nbytes)


@given(ROWS, st.integers(0, 5))
def test_no_byte_is_lost_and_the_largest_comes_first(rows: list[ModuleBytes], depth: int) -> None:
    joined = modules_joined(rows, depth)
    for kind in ("parameters", "activations"):
        wanted = sum(one.nbytes for one in rows if one.kind == kind)
        assert sum(one.by_kind.get(kind, 0) for one in joined) == wanted
    sizes = [one.nbytes for one in joined]
    assert sizes == sorted(sizes, reverse=True)
    assert len({one.module for one in joined}) == len(joined)
    assert modules_joined(rows[::-1], depth) == joined


def test_alike_modules_are_one_and_say_how_many() -> None:
    rows = [row("layers.0.mlp", 5), row("layers.1.mlp", 7), row("layers.1.attn", 4),
            row("layers.1.mlp", 1, "parameters"), row("head", 2)]  # fmt: skip
    assert modules_joined(rows, 1) == (
        ModuleMemory(module="layers.*", count=2, by_kind={"activations": 16, "parameters": 1}),
        ModuleMemory(module="head", count=1, by_kind={"activations": 2}),
    )
    assert [(one.module, one.count) for one in modules_joined(rows, 3)] == [
        ("layers.*.mlp", 2), ("layers.1.attn", 1), ("head", 1)]  # fmt: skip


def test_numbers_belong_to_what_stands_before_them() -> None:
    assert [one.module for one in modules_joined([row("a.0.b", 1)], 1)] == ["a.0"]
    assert [one.module for one in modules_joined([row("a.0.1.b.c", 1)], 2)] == ["a.0.1"]
    assert [one.module for one in modules_joined([row("net/2/x", 1)], 1)] == ["net/2"]
    assert [one.module for one in modules_joined([row("a.b", 1)], 0)] == ["a"]
    mixed = [row("layer1.0.conv2", 1), row("layer2.0.conv2", 2)]
    assert [one.module for one in modules_joined(mixed, 3)] == ["layer2.0.conv2", "layer1.0.conv2"]


def test_the_module_with_most_of_a_kind_is_named() -> None:
    rows = [row("a.b.c", 5), row("a.b.d", 4), row("e", 8), row("e", 99, "parameters")]
    assert most_words(rows, "activations") == "a.b"
    assert most_words(rows, "parameters") == "e"
    assert most_words(rows, "gradients") == ""
    assert most_words([row("", 1)], "activations") == "the loss and other ops outside of modules"
