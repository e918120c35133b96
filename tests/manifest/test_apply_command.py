"""`manage.py apply`: files, questions and exit statuses; over the management API it is in tests/clients."""

import json
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import account_settings, accounts
from storage.domain.access.actor import SERVER
from storage.management.commands.apply import Command
from storage.management.toml_writing import write_toml
from storage.models import Activity
from storage.notices import webhooks
from storage.tables import tables

FILE = """
[accounts.shop]
label = "Shop"
expires_at = 2300-01-01T00:00:00Z

[accounts.shop.tables.orders]
indexes = ["Customer"]
"""


@pytest.fixture
def run(capsys, tmp_path, db):
    """Return `run(text, ...)`, which returns the command's output for a file, and its exit status."""

    def run(text, *options):
        (tmp_path / "accounts.toml").write_text(text)
        status = 0
        try:
            call_command("apply", str(tmp_path / "accounts.toml"), *options)
        except SystemExit as end:
            status = end.code
        return capsys.readouterr().out, status

    return run


def test_plans_applies_and_finds_drift(run):
    manifest = FILE.replace("expires_at = 2300-01-01T00:00:00Z\n", "")
    planned, status = run(manifest, "--plan")
    assert status == 2
    assert planned == (
        "shop\n"
        "  + account\n"
        '      kind: "storage"\n'
        '      label: "Shop"\n'
        "  + table orders\n"
        "  + index orders/Customer\n"
        "Plan: 3 to create, 0 to change, 0 to delete.\n"
    )
    assert not accounts.exists("shop")
    made, status = run(manifest, "--yes")
    assert (status, made) == (0, planned + "3 created, 0 changed, 0 deleted.\n")
    assert {it.actor_kind for it in Activity.objects.filter(account_name="shop")} == {"command"}
    assert run(manifest, "--plan") == ("Nothing differs.\n", 0)
    tables.create(accounts.find("shop"), "extra")
    assert run(manifest, "--plan", "--prune")[1] == 2
    assert json.loads(run(manifest.replace("Shop", "Store"), "--plan", "--json")[0])["changes"][0][
        "before"
    ] == {"label": "Shop"}


def test_only_differing_nested_members_are_shown(run):
    policies = '[accounts.shop.tables.orders.policies]\na = {{ permission = "r", expiry = {} }}'
    run(policies.format("2027-01-01"), "--yes")
    lines = run(policies.format("2028-01-01"), "--plan")[0].splitlines()
    assert lines[1:3] == [
        "  ~ policies orders",
        '      a.expiry: "2027-01-01T00:00:00.0000000Z" → "2028-01-01T00:00:00.0000000Z"',
    ]


def test_a_refused_plan_is_an_error_and_not_drift(run):
    with pytest.raises(CommandError, match="refused"):
        run(FILE, "--plan")
    with pytest.raises(CommandError, match=r"accounts\.shop\.lable: Unknown member"):
        run("[accounts.shop]\nlable = 1")
    with pytest.raises(CommandError, match="not TOML"):
        run("[accounts")
    with pytest.raises(SystemExit) as wrong:
        Command().run_from_argv(["tablero", "apply", "--unknown"])
    assert wrong.value.code == 1
    assert not accounts.exists("shop")


def test_asks_and_does_nothing_without_an_answer(run, monkeypatch):
    with pytest.raises(CommandError, match="--yes"):
        run("[accounts.shop]")
    for answer, is_made in (("n\n", False), ("y\n", True)):
        monkeypatch.setattr(sys, "stdin", _Terminal(answer))
        if is_made:
            run("[accounts.shop]")
        else:
            with pytest.raises(CommandError, match="Nothing was changed"):
                run("[accounts.shop]")
        assert accounts.exists("shop") is is_made


def test_changes_during_the_confirmation_are_not_overwritten(run, monkeypatch):
    account = accounts.add("shop")
    terminal = _Terminal("y\n", lambda: account_settings.change(account, label="Other"))
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(CommandError, match="plan again"):
        run('[accounts.shop]\nlabel = "New"')
    assert accounts.find("shop").label == "Other"


class _Terminal:
    def __init__(self, answer, meanwhile=lambda: None):
        self._answer, self._meanwhile = answer, meanwhile

    def isatty(self):
        return True

    def readline(self):
        self._meanwhile()
        return self._answer


def test_a_name_that_others_gave_makes_no_lines_of_a_plan(run):
    fields = webhooks.WebhookFields("x\nNothing differs.\x9b", "https://x.example")
    webhooks.create(accounts.add("shop"), fields, by=SERVER)
    planned, _ = run("[accounts.shop.webhooks]", "--prune", "--plan")
    assert planned.splitlines()[1] == r'  - webhook "x\nNothing differs.\u009b"'


def test_the_token_is_sent_whatever_netrc_has(run, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login ada password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("TABLERO_TOKEN", "token")
    sent = []

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            sent.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(b'{"changes": []}')

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        run("[accounts.shop]", "--plan", "--server", f"http://127.0.0.1:{server.server_port}")
    assert sent == ["Bearer token"]


def test_shows_a_file_that_differs_in_nothing(run, capsys):
    run(
        '[accounts.shop]\ndescription = "a\\n\\"b\\" ç"\nlabels = { "of/x" = "y" }\n[accounts.shop.tables.orders]',
        "--yes",
    )
    accounts.add("other")
    call_command("apply", "--show", "--account", "shop")
    shown = capsys.readouterr().out
    assert shown.startswith("[accounts.shop]\n")
    assert "other" not in shown
    assert run(shown, "--plan", "--prune") == ("Nothing differs.\n", 0)


def test_toml_is_read_as_it_was_written():
    content = {
        "a": {
            "text": 'q"\\\n\x7f\u2028',
            "empty": {},
            "list": [{"x": 1, "y": ["z", True]}, 1.5],
            "a b": {"c.d": {"n": -1}},
        },
        "b": False,
    }
    assert tomllib.loads(write_toml({**content, "null": None})) == content
