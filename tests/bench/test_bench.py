"""The benchmark itself: that it measures, and that it notices wrong answers. Nothing here depends on speed."""

import json
import select
import socket
import threading

import pytest

from tests.bench import access, ceiling, console, raw, rounds
from tests.bench.__main__ import main
from tests.bench.entities import Dataset
from tests.bench.load import Expected, Run, occurrences
from tests.bench.servers import Server
from tests.bench.workloads import WORKLOADS

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="the load generator needs epoll")

TINY = ["--size=1000", "--pairs=1", "--seconds=0.05", "--connections=4", "--growth=1000"]


def test_reports_every_workload_of_a_running_server(server, tmp_path, capsys):
    result = tmp_path / "result.json"

    code = main([*TINY, f"--endpoint={server.endpoint}", "--no-azurite", f"--json={result}"])

    report = capsys.readouterr().out
    assert code == 0, report
    assert [workload.title for workload in WORKLOADS if f"\n| {workload.title} |" not in report] == []
    assert "## Growth with the table" in report
    assert "Every answer of every run was the expected one." in report
    measured = {(run["workload"], run["connections"]) for run in json.loads(result.read_text())["runs"]}
    assert measured == {(workload.name, 4) for workload in WORKLOADS}


def test_compares_ways_to_count_and_to_authorize(capsys):
    assert access.main(["--rounds=1", "--seconds=0.05", "--size=1000"]) == 0

    report = capsys.readouterr().out
    for name in access.COMPARED:
        for way in ("as it is, with a key", "with a shared access signature", "without counting"):
            assert f"| {name}, {way} |" in report


def test_measures_the_console(capsys):
    assert console.main(["--size=1000", "--requests=2"]) == 0

    report = capsys.readouterr().out
    for page in ("grid, a point", "grid, 50 rows of 252 properties", "home", "arrow key in the grid"):
        assert f"| {page} |" in report


def test_measures_raw_postgresql_in_the_database_of_the_server(server):
    contender = rounds.enter(
        Server("Tablero", "", server.endpoint, server.pid, late_work=0), size=1000, pace=0.1
    )
    limit = raw.prepare(server.data, contender.site.data)
    try:
        assert all(
            limit.per_second(workload.name, connections=2, seconds=1)
            for workload in WORKLOADS
            if workload.name in ("get", "delete", "batch", "filter-three")
        )
    finally:
        limit.close()
        rounds.drop(contender.server, contender.site.table)
    assert contender.memory["empty"] > 0


def test_a_wrong_answer_is_an_error():
    request = b"GET / HTTP/1.1\r\n\r\n"
    run = ceiling.measure(ceiling.SMALL, request, Expected(b"200"), connections=2, seconds=0.05)
    assert sum(run.errors.values()) == run.answers > 0

    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"value":[{"A":"x"}]}'[:-1]
    run = ceiling.measure(answer, request, Expected(b"200", b"{", 3), connections=1, seconds=0.05)
    assert run.errors == {"2 instead of 3 times {": run.answers}


def test_a_closed_connection_is_an_error(closing_server):
    run = Run(iter([b"GET / HTTP/1.1\r\n\r\n"]), Expected(b"200"), seconds=0.05, warm_up=0)

    assert run.measure(closing_server, connections=1).errors == {"connection closed by the server": 1}


@pytest.fixture
def closing_server():
    """Accepts, and closes at the first request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def close_the_first() -> None:
            link, _ = listener.accept()
            link.recv(1000)
            link.close()

        thread = threading.Thread(target=close_the_first)
        thread.start()
        yield listener.getsockname()
        thread.join()


@pytest.mark.parametrize("text", [b"{", b"HTTP/1.1 204"])
def test_counts_across_chunks_and_not_in_their_framing(text):
    body = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part) for part in (b"{HTTP/1.", b"1 204{{HTTP", b"/1.1 204")
    )
    answer = bytearray(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")

    assert occurrences(answer, len(answer), text) == {b"{": 3, b"HTTP/1.1 204": 2}[text]


@pytest.mark.parametrize("size", [1000, 20_000])
def test_filters_find_as_many_entities_at_any_size(size):
    data = Dataset(size)
    turns = [number // data.cities for number in range(size)]
    three = [
        n for n in range(size) if data.city(n) == data.city(3) and turns[n] % 2 and turns[n] // 2 % 10 == 3
    ]

    assert len([n for n in range(size) if data.owner(n) == data.owner(7)]) == 10
    assert len(three) == 10
    assert sorted(data.score(n) for n in range(size)) == [n + 0.25 for n in range(size)]
    assert len(data.body(7, *data.key(7))) in range(850, 1100)
