"""Packages that add readers and schemes: one is built, installed and used by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import driple
from driple.errors import ConfigError
from driple.jobs import readers
from driple.plugins import READERS, SCHEMES, PlugIn, plug_ins
from driple.schemes import registry
from tests.test_contributing import block

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "datasets/examples/resnet20.pbtxt"
PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "driple-extra"
version = "1.5"

[project.entry-points."driple.readers"]
backwards = "driple_extra.backwards:READER"

[project.entry-points."driple.schemes"]
lazy = "driple_extra.lazy:SCHEME"

[tool.hatch.build.targets.wheel]
packages = ["driple_extra"]
"""
BACKWARDS = '''"""Graph files with their bytes in reverse."""

from dataclasses import replace
from pathlib import Path

from driple.jobs.graph_file import GRAPH_FILE


def read(request):
    return GRAPH_FILE.read(replace(request, content=Path(request.text).read_bytes()[::-1]))


READER = replace(
    GRAPH_FILE,
    name="a graph file in reverse",
    form="FILE.backwards",
    claims=lambda text: text.endswith(".backwards"),
    read=read,
    refuse=None,
)
'''


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in package, as pip installs it."""
    project, folder = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("target")
    (project / "driple_extra").mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    for name, text in {
        "__init__.py": "", "backwards.py": BACKWARDS, "lazy.py": block("Add a scheme"),
    }.items():  # fmt: skip
        (project / "driple_extra" / name).write_text(text)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", folder, project], check=True)
    return folder


def asked(*arguments: object, target: Path) -> subprocess.CompletedProcess[str]:
    """The command line of this checkout, with a folder of plug-ins."""
    return subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{target}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def answer_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one answer that `predict --json` printed."""
    (answer,) = json.loads(done.stdout)["answers"]
    return dict(answer)


def test_an_installed_plug_in_reads_its_files(target: Path, tmp_path: Path) -> None:
    """With the answer of the file that it stands for; without the plug-in it is no graph."""
    file = tmp_path / "a.backwards"
    file.write_bytes(EXAMPLE.read_bytes()[::-1])
    done = asked("predict", file, "--setting", "2xV100", "--json", target=target)
    assert done.returncode == 0, done.stderr
    (plain,) = driple.predict(EXAMPLE, "2xV100").answers
    assert answer_of(done)["iteration_time_s"]["value"] == plain.iteration_time_s.value
    assert asked("predict", file, target=tmp_path).returncode == 2


def test_an_installed_plug_in_adds_a_scheme(target: Path, tmp_path: Path) -> None:
    lazy = ("predict", EXAMPLE, "--setting", "8xA100@lazy", "--json")
    done = asked(*lazy, target=target)
    assert done.returncode == 0, done.stderr
    assert answer_of(done)["setting"] == "8xA100/NVLink@lazy"
    refused = asked(*lazy, target=tmp_path)
    assert refused.returncode == 2
    assert "no scheme is called 'lazy'" in refused.stderr


def test_a_broken_plug_in_is_named_in_one_line(target: Path, tmp_path: Path) -> None:
    """Where it is needed; a question that Driple knows by itself is answered."""
    (target / "driple_extra" / "lazy.py").rename(tmp_path / "lazy.py")
    try:
        done = asked("predict", EXAMPLE, "--setting", "8xA100@lazy", target=target)
        usual = asked("predict", EXAMPLE, "--setting", "8xA100", target=target)
    finally:
        (tmp_path / "lazy.py").rename(target / "driple_extra" / "lazy.py")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "plug-in 'lazy' of driple-extra 1.5 (driple_extra.lazy:SCHEME) cannot be loaded" in line
    assert "ModuleNotFoundError" in line
    assert usual.returncode == 0


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Entry points of this process: name -> what loading gives, or the error that it raises."""
    values: dict[str, Any] = {}

    def load(value: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    def entry_points(group: str) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(name=name, value="a:B", dist=None, load=lambda value=value: load(value))
            for name, value in values.items()
        ]

    def forget() -> None:
        for cached in (plug_ins, readers._plugged_in, registry._plug_in):
            cached.cache_clear()

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    forget()
    yield values
    forget()


def test_plug_ins_come_by_name_and_are_checked(points: dict[str, Any]) -> None:
    points |= {"b": 2, "a": 1}
    assert [one.value for one in plug_ins(READERS, "a number", is_number)] == [1, 2]
    points["c"] = "three"
    plug_ins.cache_clear()
    with pytest.raises(ConfigError, match=r"plug-in 'c' \(a:B\) is str, and a number is needed"):
        plug_ins(READERS, "a number", is_number)


def is_number(value: object) -> bool:
    return isinstance(value, int)


def test_an_error_of_a_plug_ins_code_names_it(points: dict[str, Any]) -> None:
    """While it claims, and while it reads; Driple's own errors pass."""
    from dataclasses import replace

    from driple.jobs.graph_file import GRAPH_FILE
    from driple.jobs.load import load_job
    from driple.jobs.timm_name import TIMM

    def fail(_: object) -> Any:
        raise KeyError("a field")

    claims = {"claims": lambda text: text.startswith("bad:"), "form": "bad:NAME", "refuse": None}
    points["bad"] = replace(GRAPH_FILE, **claims, read=fail)
    with pytest.raises(ConfigError, match=r"plug-in 'bad' \(a:B\) failed: KeyError: 'a field'"):
        load_job("bad:x")
    points["bad"] = replace(GRAPH_FILE, **claims | {"claims": fail})
    plug_ins.cache_clear()
    readers._plugged_in.cache_clear()
    with pytest.raises(ConfigError, match="plug-in 'bad'"):
        load_job("anything:x")
    points["bad"] = replace(GRAPH_FILE, form=TIMM.form)
    plug_ins.cache_clear()
    readers._plugged_in.cache_clear()
    with pytest.raises(ConfigError, match="which another reader does"):
        load_job("anything:x")
    with pytest.raises(ConfigError, match=r"^its own words$"), PlugIn("x", None).blamed():
        raise ConfigError("its own words")


def test_what_driple_knows_by_itself_asks_no_plug_in(points: dict[str, Any]) -> None:
    """So a search, and a broken package, cost nothing where they are not needed."""
    points["bad"] = RuntimeError("boom")
    assert driple.predict(EXAMPLE, "V100-P1w2").answers
    assert registry.scheme_named("fsdp").name == "fsdp"
    with pytest.raises(ConfigError, match="plug-in 'bad'"):
        driple.predict(EXAMPLE, "8xA100@unknown")


def test_a_scheme_whose_name_is_taken_is_refused(points: dict[str, Any]) -> None:
    class Impostor(type(registry.scheme_named("zero1"))):  # type: ignore[misc]
        pass

    points["zero1"] = Impostor()
    with pytest.raises(ConfigError, match=r"plug-in 'zero1' \(a:B\): a scheme called 'zero1'"):
        registry.registered_schemes()
    points["zero1"] = type
    plug_ins.cache_clear()
    with pytest.raises(ConfigError, match="is needed"):
        plug_ins(SCHEMES, "a scheme", registry._is_scheme)
