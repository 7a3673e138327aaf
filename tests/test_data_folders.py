from pathlib import Path

import pytest

from driple.data_folders import moved_to, settings_in
from driple.dataset.store import read_dataset
from driple.errors import DatasetError


def test_settings_come_before_ones_own_data() -> None:
    assert settings_in(Path("a")) == [Path("a/settings"), Path("a")]


def test_a_folder_that_moved_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs" / "published").mkdir(parents=True)

    assert moved_to(tmp_path / "published") == tmp_path / "runs" / "published"
    assert moved_to(tmp_path / "mine") is None


def test_an_old_path_of_a_data_set_is_answered_with_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "settings" / "V100").mkdir(parents=True)

    with pytest.raises(DatasetError, match=f"give {tmp_path}/settings/V100"):
        read_dataset(tmp_path / "V100")
