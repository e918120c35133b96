"""Labels of accounts."""

import pytest

from storage.core.labels import LabelError, check_labels, is_label_name, read_lines, write_lines


def test_names_and_values():
    for name in ("a", "branch", "app.kubernetes.io/name", "a_b-c", "9", "x" * 63):
        assert is_label_name(name)
    for name in ("", "-a", "a-", "a b", "\u0131", "a\n", "x" * 64, "a=b", "\0"):
        with pytest.raises(LabelError):
            check_labels({name: ""})
    for value in ("x" * 256, "a\nb", "\0", "\ud800", "\u2028", "\x7f"):
        with pytest.raises(LabelError, match="label a must be one line"):
            check_labels({"a": value})


def test_lines_come_back():
    labels = {"branch": "fix/it=now", "empty": "", "ğ".encode().hex(): "ğ 🦊"}
    assert read_lines(write_lines(labels)) == labels
    assert read_lines(" a = 1 \n\n b\n") == {"a": "1", "b": ""}
    with pytest.raises(LabelError, match="appears twice"):
        read_lines("a=1\na=2")
