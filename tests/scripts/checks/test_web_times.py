"""Each question of the timing is answered, and each is another one."""

from scripts.checks.web_server import running_server
from scripts.checks.web_times import cluster_names, times


def test_all_questions_are_answered() -> None:
    with running_server() as server:
        result = times(server, questions=16, graphs=2)
    assert result.findings == []
    assert result.questions == {"read_job": 16, "graph": 2, "batch": 16}
    assert 0 < result.read_job_p50_s <= result.read_job_p99_s
    assert 0 < result.graph_p50_s <= result.graph_p99_s
    assert result.batch_per_s > 0
    assert len(set(cluster_names())) == len(cluster_names()) == 320
