"""`manage.py pg` where it must refuse; tests/docs runs it as the documentation does."""

import pytest
from django.core.management import call_command

from storage.server import embedded, options
from storage.server.refusal import Refusal


@pytest.mark.parametrize(
    ("environment", "message"),
    [({}, "There is no database in"), ({"DATABASE_URL": "postgresql://db.example.org/t"}, "DATABASE_URL")],
)
def test_refuses_without_an_embedded_database(tmp_path, settings, environment, message):
    settings.OPTIONS = options.read({"TABLERO_DATA": str(tmp_path / "typo"), **environment})
    with pytest.raises(Refusal, match=message):
        call_command("pg", "psql")
    assert not (tmp_path / "typo").exists()


def test_a_failure_of_the_program_is_one_of_the_command(used, settings, capfd):
    settings.OPTIONS = options.read({"TABLERO_DATA": str(used)})
    with embedded.running(settings.OPTIONS, purpose="serve", say=print):
        with pytest.raises(SystemExit) as end:
            call_command("pg", "psql", "--command", "SELECT 1/0")
        assert end.value.code == 1
        capfd.readouterr()
        call_command("pg", "psql", "--tuples-only", "--command", "SELECT 6*7")
        assert capfd.readouterr().out.strip() == "42"
        with pytest.raises(Refusal, match="no-such-program cannot be run"):
            call_command("pg", "no-such-program")
