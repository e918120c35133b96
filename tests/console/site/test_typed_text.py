"""Everything that can be wrong with a text has a sentence."""

from console.site.typed_text import FAULTS, LOSSES, field_text, sentence
from storage.editing.conversions import Loss
from storage.editing.typed_text import InvalidText, TextFault


def test_every_fault_and_every_loss_has_a_sentence():
    assert set(FAULTS) == set(TextFault)
    assert set(LOSSES) == set(Loss)


def test_names_the_position_and_the_size():
    assert sentence(InvalidText(TextFault.NOT_HEX, position=7)) == "Character 7 is not a hexadecimal digit."
    assert "70,000 bytes" in sentence(InvalidText(TextFault.TOO_LONG, size=70_000))


def test_undoes_the_line_ends_of_browsers():
    assert field_text("one\r\ntwo\n") == "one\ntwo\n"
