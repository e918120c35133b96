"""The benchmark: one run of it, and that its load generator counts no wrong answer. Nothing here depends on speed."""

import json
import select
import socket
import threading

import pytest

from tests.tools.bench import (
    plan,
)
from tests.tools.bench.__main__ import main
from tests.tools.bench.load import Expected, Run
from tests.tools.bench.workloads import LATER_RANGE, WORKLOADS

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the load generator needs epoll")

TINY = ["--sizes=1000", "--pairs=1", "--seconds=0.05", "--connections=4", "--loading=0"]


def test_reports_every_workload_of_a_running_server(server, tmp_path, capsys):
    result = tmp_path / "result.json"

    code = main(
        [*TINY, "--layouts=many", f"--endpoint={server.endpoint}", "--no-azurite", f"--json={result}"]
    )

    report = capsys.readouterr().out
    assert code == 0, report
    assert "## Against Azurite" in report
    assert "## 1,000 in partitions of a hundred" in report
    assert [workload.title for workload in WORKLOADS if f"\n| {workload.title} |" not in report] == []
    assert "Every answer of every run was the expected one." in report
    measured = {
        (run["workload"], run["layout"], run["connections"]) for run in json.loads(result.read_text())["runs"]
    }
    # so small a table gets no index
    assert measured == {(name, "many", 4) for name in plan.ALL if name != LATER_RANGE}
    assert "| numeric range, a minute later | – | – | – |" in report


def test_a_wrong_answer_is_an_error(answering_server):
    request = b"GET / HTTP/1.1\r\n\r\n"
    for expected, error in (
        (Expected(b"404"), "200 instead of 404"),
        (Expected(b"200", b"{", 3), "2 instead of 3"),
    ):
        run = Run(iter([request] * 5), expected, seconds=60, warm_up=0).measure(
            answering_server, connections=1
        )
        assert run.answers == 5
        assert [(text.startswith(error), count) for text, count in run.errors.items()] == [(True, 5)]


@pytest.mark.parametrize("answers", [1])
def test_requests_that_end_before_the_measurement_are_an_error(answering_server):
    run = Run(iter([b"GET / HTTP/1.1\r\n\r\n"] * 5), Expected(b"200"), seconds=60, warm_up=60)
    assert list(run.measure(answering_server, connections=1).errors) == [
        "no request was left after the warm-up"
    ]


@pytest.fixture
def answers():
    return 2


@pytest.fixture
def answering_server(answers):
    """Answers so many connections, each request with a page of one entity."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_all() -> None:
            for _ in range(answers):
                link, _ = listener.accept()
                with link:
                    while link.recv(1000):
                        link.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"value":[{"A":"x"}]}')

        thread = threading.Thread(target=answer_all)
        thread.start()
        yield listener.getsockname()
        thread.join()
