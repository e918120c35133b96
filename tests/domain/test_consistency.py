import pytest

from storage.domain.requests.consistency import Consistency, Session, read_level, read_token, write_token


@pytest.mark.parametrize("level", Consistency)
def test_levels_are_read_in_any_letter_case(level):
    assert read_level(level.value) is level
    assert read_level(f" {level.upper()} ") is level


def test_names_of_levels():
    assert read_level("Bounded") is Consistency.BOUNDED_STALENESS
    assert read_level("Linearizable") is None
    assert read_level("") is None


def test_the_strongest_level_comes_first():
    assert min(Consistency, key=lambda level: level.rank) is Consistency.STRONG
    assert Consistency.SESSION.rank < Consistency.EVENTUAL.rank


def test_tokens():
    assert read_token(write_token(70_097_768)) == 70_097_768
    assert read_token(f"{write_token(5)}, {write_token(7)},{write_token(6)}") == 7


@pytest.mark.parametrize("text", ["", "7", "0:-1#", "0:-1#x", "0:-1#7,", "0:-1#-7", "0:-1#" + "9" * 20])
def test_invalid_tokens_are_ignored(text):
    assert read_token(text) is None


def test_a_session_keeps_the_furthest_position():
    session = Session(5)
    for position in (7, 9, 8):
        session.note(position)
    assert session.position == 9
