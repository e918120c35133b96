"""The benchmark itself: that it measures, and that it notices wrong answers. Nothing here depends on speed."""

import io
import json
import os
import select
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from storage.remote.azurite import AzuriteFile
from tests.tools.bench import (
    azurite_files,
    bulk_edit,
    console,
    fixtures,
    indexes,
    plan,
    processes,
    raw,
    reference,
    rounds,
    sdk_loading,
    stages,
    transfer,
)
from tests.tools.bench import size as size_bench
from tests.tools.bench.__main__ import main, read
from tests.tools.bench.entities import PER_OWNER, Dataset, Layout
from tests.tools.bench.load import Expected, Measurement, Run, occurrences
from tests.tools.bench.report import Cell, Results, write
from tests.tools.bench.servers import OURS, PEER, RELAXED, ROOT, Server
from tests.tools.bench.workloads import LATER_RANGE, WORKLOADS, Workload

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


def test_the_workloads_that_depend_on_the_layout_get_right_answers_in_one_partition(server, capsys):
    names = "batch,page,range,filter-partition"
    options = ["--layouts=one", f"--workloads={names}", f"--endpoint={server.endpoint}", "--no-azurite"]

    code = main([*TINY, *options])

    report = capsys.readouterr().out
    assert code == 0, report
    assert "## 1,000 in one partition" in report


def test_the_report_names_medians_worst_cases_and_the_goals_that_are_missed():
    results = measured_inserts()

    report = write(results, [workload_named("insert")], [1, 8])

    assert "| insert | 1.00 / 2.00 | 2.00 / 1.00 | 0.90 at 1, 10,000 in one partition |" in report
    assert (
        "| insert, equal durability | 1.50 / 1.20 | 0.80 / 1.00 | 1.20 at 8, 1,000 in one partition |"
        in report
    )
    assert "| insert, requests/s at 1 / 8 | 0.8 / 1.8 | 1.00 / 2.00 | yes | 0.90 at 1," in report
    assert (
        "| insert, equal durability, requests/s at 1 / 8 | 1.1 / 1.5 | 1.50 / 1.20 | no, at 8 | 1.20"
        in report
    )
    assert "| insert, equal durability, p50 at 1 / 8 | 1 / 1 | 0.80 / 1.00 | no, at 1 | 0.80 at 1," in report
    assert "No ratios" not in report


def test_a_machine_that_was_busy_gets_no_ratios_of_one_connection():
    results = measured_inserts(others=0.3)
    results.disturbances.append("the load was 7.00 before the start")

    report = write(results, [workload_named("insert")], [1, 8])

    assert "No ratios of one connection: the load was 7.00 before the start." in report
    assert "| insert | –\\* / 2.00\\* | –\\* / 1.00\\* | 2.00\\* at 8, 1,000 in one partition |" in report
    assert "| insert, requests/s at 1 / 8 | 0.8 / 1.8 | – / 2.00 | not known at 1 |" in report


def measured_inserts(others: float = 0.0) -> Results:
    """Three tables at one connection, and the first of them at eight."""
    results = Results()
    for size, layout, ours in ((1000, Layout.ONE, 100), (1000, Layout.MANY, 300), (10_000, Layout.ONE, 90)):
        cell = Cell("insert", Dataset(size, layout), 1)
        results.runs[cell, OURS].append(Measurement(ours, 1.0, 9.0, 10, cpu=50.0, others=others))
        results.runs[cell, RELAXED].append(Measurement(150, 2.5, 9.0, 10, cpu=50.0))
        results.runs[cell, PEER].append(Measurement(100, 2.0, 4.0, 10))
    cell = Cell("insert", Dataset(1000), 8)
    for name, per_second in ((OURS, 200), (RELAXED, 120), (PEER, 100)):
        results.runs[cell, name].append(Measurement(per_second, 2.0, 4.0, 10, others=others))
    return results


def workload_named(name: str) -> Workload:
    return next(workload for workload in WORKLOADS if workload.name == name)


@pytest.mark.parametrize(
    ("form", "least", "most"), [(["--quick"], 4, 6), (["--standard"], 22, 28), ([], 110, 150)]
)
def test_says_how_long_it_takes(form, least, most):
    options = read(form)

    assert least < plan.seconds(options) / 60 < most
    assert plan.seconds(read([*form, "--no-azurite"])) < plan.seconds(options)
    assert plan.seconds(read([*form, "--pairs=5"])) > plan.seconds(options)


def test_counts_the_runs_of_the_standard_form():
    # five readings by two servers, on four of the tables a sixth after its index, and six writes by three
    assert plan.number_of_runs(read(["--standard"])) == 3 * (6 * (5 * 2 + 6 * 3) + 4 * 2)


@pytest.mark.parametrize("name", ["insert", "delete", "batch"])
def test_runs_that_share_a_table_do_not_repeat_requests(server, monkeypatch, name):
    monkeypatch.setattr(rounds, "REUSED_FROM", 1000)
    workload = workload_named(name)
    contender = rounds.enter_for_writes(
        Server("Tablero", "", server.endpoint, server.pid), Dataset(1000, Layout.MANY)
    )
    with rounds.Grounds(workload) as grounds:
        sites = []
        for _ in range(2):
            with grounds.site(contender, 4) as site:
                rounds.send(contender.server, workload.build(site, 4), workload.expected(site.data))
                sites.append(site)
        with grounds.site(contender, 997) as site:
            sites.append(site)

    assert sites[0].table == sites[1].table
    assert (sites[2].table == sites[0].table) == (name != "delete")  # too few entities are left to delete


def test_loads_by_several_clients_of_the_sdk(server):
    loading = sdk_loading.load(Server("Tablero", "", server.endpoint, server.pid), entities=1000, clients=2)

    assert loading.per_second > 0
    assert loading.clients > 0
    results = Results(sdk={(1000, OURS, 2): loading})
    assert "## Loading 1,000 entities by the Python SDK" in write(results, [], [1])


def test_stages_split_the_time_of_a_request_and_compare_it_with_an_earlier_run(tmp_path):
    saved = tmp_path / "stages.json"
    command = [
        sys.executable,
        "-m",
        "tests.tools.bench.stages",
        "--rounds=1",
        "--requests=4",
        f"--save={saved}",
    ]
    command.append("--workloads=insert,batch,page")

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    figures = json.loads(saved.read_text())["figures"]
    assert list(figures) == ["insert", "batch", "page"]
    for name in ("service", "connection", "head", "authorize", "body", "statement", "lane", "answer"):
        assert figures["insert"][name] > 0
    assert figures["page"]["rows"] > 0
    earlier = {"insert": {**figures["insert"], "body": figures["insert"]["body"] / 2}}
    assert [line.partition(":")[2][:14] for line in stages.compare(figures, earlier)] == [" insert, body:"]


def test_no_operation_needs_more_cpu_time_than_the_reference_says(capsys):
    code = stages.main(["--check"])

    assert code == 0, capsys.readouterr().out


def test_an_operation_that_got_slower_is_named():
    known = dict.fromkeys(reference.OPERATIONS, 2.0)
    busy = dict.fromkeys(reference.OPERATIONS, 2.16)

    assert reference.slower({**known, "merge": 2.24}, known) == ["merge"]
    assert reference.slower({**busy, "merge": 2.42}, known) == ["merge"]
    assert reference.slower({**busy, "merge": 2.3}, known) == []
    assert reference.slower({**known, "merge": 1.0, "page": 2.24}, known) == ["page"]
    assert reference.slower(dict.fromkeys(known, 2.24), known) == ["all operations"]


def test_measures_how_long_tests_wait(monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # set back at the end
    monkeypatch.setattr(fixtures, "ACCOUNTS", 1)
    assert fixtures.main(["--rounds=1"]) == 0
    assert "| later runs, until the first account |" in capsys.readouterr().out


def test_a_stopped_server_runs_on_afterwards():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with Server("", "", "", process.pid).stopped():
            os.waitpid(process.pid, os.WUNTRACED)
            assert "T (stopped)" in processes.read(Path(f"/proc/{process.pid}/status"))
        assert process.communicate(b"still here")[0] == b"still here"


def test_measures_the_console(require, capsys):
    assert console.main(["--size=1000", "--requests=2", "--only=first page"]) == 0

    report = capsys.readouterr().out
    assert "| grid, the first page |" in report
    require("chromium", "the measurement of pages in a browser")
    for page in ("grid, the first page, first visit", "arrow key in the grid"):
        assert f"| {page} |" in report


def test_a_run_in_whose_time_nothing_was_answered_has_no_ratio():
    """This happens on a machine that is very busy."""
    titles = [it.title for it in indexes.FILTERS]
    assert indexes.row(titles[1], dict.fromkeys(titles, 2.0), dict.fromkeys(titles, 0.0), {})[-1] == "–"


def test_measures_indexes(capsys):
    assert indexes.main(["--size=1000", "--seconds=0.02", "--no-azurite", "--rounds=1"]) == 0

    report = capsys.readouterr().out
    assert [it.title for it in indexes.FILTERS if f"| {it.title} |" not in report] == []
    assert "| CPU of the backend | no index | an index | 4 indexes | 8 indexes |" in report


def test_measures_what_size_costs(scratch):
    scale = size_bench.Scale("small", entities=1000, tables=12, accounts=5)
    options = size_bench.read(["--pairs=1", "--seconds=0.02", "--only=table"])
    with ExitStack() as stack:
        size_bench.fill(scratch / "size", scale)
        side = size_bench.enter(scratch / "size", scale, stack)
        size_bench.check_filling(side)
        size_bench.warm_up(side)
        titles = [row[0] for row in size_bench.rows([side, side], options)]

    assert {"create a table", "find a table by a range of names", "tables by entities"} <= set(titles)


@pytest.mark.parametrize("layout", Layout)
def test_measures_raw_postgresql_in_the_database_of_the_server(server, layout):
    contender = rounds.enter(Server("Tablero", "", server.endpoint, server.pid), Dataset(1000, layout))
    names = {Layout.ONE: ("get", "delete", "filter-three"), Layout.MANY: ("batch", "page", "range")}[layout]
    limit = raw.prepare(server.data, contender.site)
    try:
        assert all(
            limit.per_second(workload.name, connections=2, seconds=1)
            for workload in WORKLOADS
            if workload.name in names
        )
    finally:
        limit.close()
        rounds.drop(contender.server, contender.site.table)
    assert contender.server.cpu_seconds() > 0


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


@pytest.fixture
def answering_server():
    """Answers two connections, each request with a page of one entity."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_all() -> None:
            for _ in range(2):
                link, _ = listener.accept()
                with link:
                    while link.recv(1000):
                        link.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"value":[{"A":"x"}]}')

        thread = threading.Thread(target=answer_all)
        thread.start()
        yield listener.getsockname()
        thread.join()


def test_a_closed_connection_is_an_error(closing_server):
    run = Run(iter([b"GET / HTTP/1.1\r\n\r\n"]), Expected(b"200"), seconds=0.05, warm_up=0)

    assert run.measure(closing_server, connections=1).errors == {"connection closed by the server": 1}


@pytest.fixture
def closing_server():
    """Listen on a port, accept a connection, and close it at the first request."""
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


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("size", [1000, 20_000])
def test_filters_find_as_many_entities_at_any_size(size, layout):
    data = Dataset(size, layout)
    turns = [number // data.cities for number in range(size)]
    three = [
        n for n in range(size) if data.city(n) == data.city(3) and turns[n] % 2 and turns[n] // 2 % 10 == 3
    ]

    owned = [n for n in range(size) if data.owner(n) == data.owner(7)]
    assert len(owned) == PER_OWNER
    in_partition = [n for n in owned if data.key(n)[0] == data.key(7)[0]]
    assert len(in_partition) == data.per_owner_in_partition == (10 if layout is Layout.ONE else 1)
    keys = [data.key(n) for n in range(size)] + [data.new_key(n) for n in range(2 * size)]
    assert len(set(keys)) == 3 * size
    assert keys[:size] == sorted(keys[:size])
    assert len(three) == 10
    assert sorted(data.score(n) for n in range(size)) == [n + 0.25 for n in range(size)]
    assert len(data.body(7, *data.key(7))) in range(850, 1100)


def test_bulk_edits_are_measured_and_checked(server, capsys):
    bulk_edit.report(Server("Tablero", "", server.endpoint, server.pid), server.data, 1000)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0][2:] for row in rows] == ["edit", *bulk_edit.EDITS]


def test_imports_and_exports_are_measured_and_checked(server, tmp_path, capsys):
    measured = Server("Tablero", "", server.endpoint, server.pid)
    transfer.report(measured, server.data, tmp_path, 1000, seconds=0.2, formats=("ndjson",))
    rows = [
        line.split(" | ")[0][2:] for line in capsys.readouterr().out.splitlines() if line.startswith("| ")
    ]
    assert rows[1:4] == ["change sets of the Python SDK", "export, ndjson", "import, ndjson"]
    assert rows[-2:] == ["alone", "during an import"]


def test_a_file_for_azurite_has_all_entities_in_each_table():
    data, names = azurite_files.SmallDataset(1000), ("small0", "small1")
    collections = [{"name": "$TABLES_COLLECTION$", "data": [{"account": "one", "table": it} for it in names]}]
    for name in names:
        document = {"RowKey": "", "properties": {"Timestamp": "2026-11-26T16:26:15.4192860Z"}, "$loki": 1}
        indices = {"RowKey": {"values": [0]}}
        collections.append({"name": f"one${name}", "data": [document], "binaryIndices": indices, "maxId": 1})
    text = "".join(azurite_files.repeat({"collections": collections}, data))
    file = AzuriteFile(lambda: io.BytesIO(text.encode()), "")
    for name in names:
        results = [{**it, "Timestamp": None} for it in file.entities("one", name)]
        assert results == [
            {**json.loads(data.body(it, *data.key(it))), "Timestamp": None} for it in range(1000)
        ]
    last = json.loads(text)["collections"][-1]
    assert (last["maxId"], last["data"][-1]["$loki"], last["data"][-1]["RowKey"]) == (
        1000,
        1000,
        "r000000999",
    )
    assert last["binaryIndices"]["RowKey"]["values"][-1] == 999
