"""What children of the server find done already: imports, and what no search for garbage passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

GRAPH = Path(__file__).resolve().parents[2] / "datasets" / "examples" / "resnet20.pbtxt"
CHILD = """
import gc, json, sys
from pathlib import Path
from driple.web.fork_server import import_early
import_early()
frozen, imported = gc.get_freeze_count(), set(sys.modules)
from driple.jobs.graph_file import GRAPH_FILE
from driple.jobs.options import JobOptions
from driple.jobs.readers import JobRequest
content = Path(sys.argv[1]).read_bytes()
job = GRAPH_FILE.read(JobRequest(text="graph", options=JobOptions(), content=content))
missed = [name for name in set(sys.modules) - imported if name.startswith("driple.")]
print(json.dumps([job.graph.num_nodes, frozen, len(gc.get_objects()), missed]))
"""


def test_a_child_reads_a_graph_without_imports() -> None:
    """And what was imported for it is no part of a search for garbage."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(GRAPH)], capture_output=True, text=True, check=True
    )
    nodes, frozen, searched, missed = json.loads(done.stdout.splitlines()[-1])
    assert nodes == 681
    assert missed == []
    assert frozen > 10 * searched
