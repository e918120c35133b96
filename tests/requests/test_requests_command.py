"""`manage.py requests`."""

import pytest
from django.core.management import CommandError, call_command

from storage.accounts import accounts
from storage.domain.errors import EntityAlreadyExists
from storage.management.commands import requests
from tests.requests.test_operations import write

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def account(db):
    return accounts.add("acme")


def test_says_what_was_refused_and_follows(account, capsys, monkeypatch):
    write(account, 2)

    def sleep(seconds, state=[]):  # noqa: B006
        if state:
            raise KeyboardInterrupt
        state.append(write(account, 1))

    monkeypatch.setattr(requests.time, "sleep", sleep)

    call_command("requests", "acme", "--follow", "--code", EntityAlreadyExists.__name__)

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "  409 EntityAlreadyExists  InsertEntity  /observed/people()  key1  " in lines[0]
    call_command("requests", "--id", "mine", "--limit", "2")
    assert len(capsys.readouterr().out.splitlines()) == 2
    call_command("requests", "acme", "--code", "Other")
    assert capsys.readouterr().out == ""
    with pytest.raises(CommandError, match="does not exist"):
        call_command("requests", "nowhere")
    call_command("requests", "--id", "another")
    assert "has no request with the ID another" in capsys.readouterr().err
    for limit in ("0", "-5"):
        with pytest.raises(CommandError, match="must be a number from 1"):
            call_command("requests", "acme", "--limit", limit)
