"""A machine with one Python, as the checks of an installation make it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scripts.checks.clean_install import (
    clean_environment,
    interpreters,
    readme_blocks,
    readme_packages,
)


def test_the_running_python_is_among_those_of_the_machine() -> None:
    version = "{}.{}".format(*sys.version_info)
    offered = interpreters([version, "9.9"])
    assert set(offered) == {version}
    assert offered[version].is_file()


def test_an_environment_knows_one_python_and_no_index(tmp_path: Path) -> None:
    variables = clean_environment(Path(sys.executable).resolve(), tmp_path, tmp_path / "packages")
    code = "import os, sys; print(sys.version_info[:2], os.path.expanduser('~'))"
    done = subprocess.run(
        ["python3", "-c", code], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout.split(") ")[0] == str(sys.version_info[:2])[:-1]
    assert done.stdout.strip().endswith(str(tmp_path / "home"))
    assert variables["PIP_NO_INDEX"] == "1"
    assert not {"PYTHONPATH", "VIRTUAL_ENV", "DRIPLE_VENV"} & set(variables)


def test_what_a_readme_installs_is_read_out_of_it() -> None:
    text = "```bash\na && b\npip install -c constraints.txt x==1 && pip install '.[y,z]'\n```\n"
    assert readme_blocks("bash", text)[0].startswith("a && b")
    assert readme_packages(text) == [["x==1"], [".[y,z]"]]
    assert ["torch==2.13.0"] in readme_packages()
