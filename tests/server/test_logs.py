"""The server's log: formats, and messages that are repeated."""

import json
import logging

import pytest

from storage.server import logs, options, supervisor


def record(message, *arguments, name="storage", error=None, **extra):
    info = (type(error), error, error.__traceback__) if error else None
    result = logging.LogRecord(name, logging.ERROR, "", 0, message, arguments, info)
    result.__dict__.update(extra)
    return result


def failed():
    try:
        raise ValueError("first\nsecond")
    except ValueError as error:
        return error


def test_json_is_one_line_with_the_exception_and_the_request():
    fields = {"request_id": "abc", "user": "ada", "account": "acme", "operation": ""}
    line = logs.JsonFormatter().format(record("Request %s\nfailed", 7, error=failed(), **fields))
    assert "\n" not in line
    result = json.loads(line)
    assert (result["level"], result["logger"], result["message"]) == ("error", "storage", "Request 7 failed")
    assert (result["request_id"], result["user"], result["account"]) == ("abc", "ada", "acme")
    assert "operation" not in result
    assert result["exception"].endswith("ValueError: first\nsecond")


@pytest.mark.parametrize("formatter", [logs.JsonFormatter(), logs.TextFormatter()])
def test_signatures_are_left_out_wherever_they_stand(formatter):
    sent = "GET /acme/t()?sv=1&sig=c2VjcmV0%3D&se=2 with SharedKey acme:c2VjcmV0= and Next%3Fsig%3Dc2VjcmV0"
    line = formatter.format(record("Failed: %s", sent, error=ValueError(f"cannot read '{sent}'")))
    assert "c2VjcmV0" not in line
    assert line.count("&se=2 with SharedKey acme:XXXXX and Next") == 2


def test_text_tells_a_terminal_nothing():
    error = ValueError("\x1b[2J\r")
    line = logs.TextFormatter().format(record("GET %s", "/a\x1b[2J\x9b\x00\rb", error=error))
    assert "GET /a\\x1b[2J\\x9b\\x00 b\n" in line
    assert line.endswith("ValueError: \\x1b[2J\\x0d")
    line = logs.JsonFormatter().format(record("GET", account="\x9b2J?sig=c2VjcmV0"))
    assert json.loads(line)["account"] == "\\x9b2J?sig=XXXXX"  # as it stood in the address


def test_text_puts_a_message_of_several_lines_on_one():
    line = logs.TextFormatter().format(record("connection failed:\n\tIs the server running?"))
    assert line.endswith(" ERROR storage: connection failed: Is the server running?")


def test_a_message_is_repeated_once_a_minute_with_a_count():
    now = 0.0
    repetitions = logs.RepetitionFilter(lambda: now)
    assert repetitions.filter(record("The database does not answer: %s", "refused"))
    for _ in range(9):
        assert not repetitions.filter(record("The database does not answer: %s", "refused"))
    assert repetitions.filter(record("The database does not answer: %s", "another reason"))
    assert repetitions.filter(record("The database does not answer: %s", "refused", error=failed()))
    now = 61.0
    again = record("The database does not answer: %s", "refused")
    assert repetitions.filter(again)
    assert logs.TextFormatter().format(again).endswith("refused (repeated 9 times)")


def test_the_pool_names_another_connection_each_time():
    repetitions = logs.RepetitionFilter()
    assert repetitions.filter(record("discarding %s", "0x7f01", name="psycopg.pool"))
    assert not repetitions.filter(record("discarding %s", "0x7f02", name="psycopg.pool"))


@pytest.mark.parametrize(
    ("level", "of_ours", "of_libraries"),
    [("debug", "DEBUG", "WARNING"), ("warning", "WARNING", "WARNING"), ("error", "ERROR", "ERROR")],
)
def test_levels(level, of_ours, of_libraries):
    result = logs.configuration(options.read({"TABLERO_LOG_LEVEL": level}))
    assert result["root"]["level"] == of_ours
    assert result["loggers"]["psycopg"]["level"] == of_libraries


def test_announcements_have_the_format_of_the_log():
    line = logs.announcement(options.read({"TABLERO_LOG_FORMAT": "json"}), "Ready. Stop with Ctrl-C.")
    result = json.loads(line)
    assert (result["level"], result["message"]) == ("info", "Ready. Stop with Ctrl-C.")
    assert logs.announcement(options.read({}), "Ready.") == "Ready."


def test_the_supervisor_writes_the_fields_of_the_log():
    of_server = json.loads(logs.JsonFormatter().format(record("It ended")))
    of_supervisor = json.loads(supervisor.in_json("It ended"))
    assert of_supervisor.keys() == of_server.keys()
    assert (of_supervisor["level"], of_supervisor["message"]) == ("error", "It ended")


def test_the_log_of_postgresql_is_bounded(tmp_path):
    log = tmp_path / "postgres.log"
    with log.open("ab", buffering=0) as written:
        written.write(b"x" * 10)
        supervisor.bound(log, 10)
        assert log.stat().st_size == 10
        written.write(b"y")
        supervisor.bound(log, 10)
        written.write(b"z")
    assert log.read_bytes() == b"z"
    assert (tmp_path / "postgres.log.1").read_bytes() == b"x" * 10 + b"y"
    supervisor.bound(tmp_path / "missing.log", 10)
