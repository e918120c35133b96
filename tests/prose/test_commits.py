"""Subjects of commits: `part: Imperative verb …`."""

import pytest

from tests.prose import commits


@pytest.mark.parametrize(
    "subject",
    [
        "tests: Wait for presence before clicking elements it shifts",
        "storage/sql, console: Lock the row of the account",
        "Merge branch 'main' into feature",
        'Revert "console: Lock the row"',
    ],
)
def test_accepts_imperative_subjects(subject):
    assert commits.faults(subject) == []


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("tests: who else is here is waited for", "form"),
        ("Lock the row of the account", "form"),
        ("console: Locks the row", "'Locks'"),
        ("console: Locked the row", "'Locked'"),
        ("console: Locking the row", "'Locking'"),
        ("console: The row is locked", "'The'"),
        ("console: What is locked stays locked", "'What'"),
        ("console: Rows of accounts", "'Rows'"),
        ("console: Lock the row of what is deleted", "clause"),
        ("console: Lock the row.", "full stop"),
        ("console: Lock " + "x" * 60, "74 characters"),
    ],
)
def test_refuses_other_subjects(subject, fault):
    (message,) = commits.faults(subject)
    assert fault in message


def test_hook_reads_the_first_uncommented_line(tmp_path, capsys):
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text(
        "\n# Please enter the message\nconsole: Lock the row\n\nWhat is locked stays locked.\n"
    )
    assert commits.main([str(message)]) == 0
    message.write_text("console: the row is locked\n")
    assert commits.main([str(message)]) == 1
    assert "console: the row is locked" in capsys.readouterr().out
