"""The search for garbage pauses, and goes on as it was, however the pause ends."""

from __future__ import annotations

import gc

import pytest

from driple.garbage import no_search_for_garbage


@pytest.mark.parametrize("is_on", [True, False])
def test_the_search_goes_on_as_it_was(*, is_on: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if is_on else gc.disable)()
        with pytest.raises(KeyError), no_search_for_garbage():
            with no_search_for_garbage():
                assert not gc.isenabled()
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if before else gc.disable)()
