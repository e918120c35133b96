"""Boolean values as pairs of words."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from storage.domain.values.edm import Edm
from storage.editing.formats.format import Format, NotInFormat

# the words for true and false that spreadsheets and people write; true and false themselves need no format
PAIRS: Final = (
    *(("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"), ("ja", "nein"), ("j", "n"), ("wahr", "falsch")),
    *(("oui", "non"), ("o", "n"), ("vrai", "faux"), ("sí", "no"), ("s", "n"), ("verdadero", "falso")),
    *(("vero", "falso"), ("sim", "não"), ("verdadeiro", "falso"), ("ja", "nee"), ("waar", "onwaar")),
    *(("evet", "hayır"), ("e", "h"), ("doğru", "yanlış"), ("ja", "nej"), ("ja", "nei"), ("sant", "falskt")),
    *(("sand", "falsk"), ("sann", "usann"), ("kyllä", "ei"), ("tosi", "epätosi"), ("tak", "nie"), ("t", "n")),
    *(
        ("prawda", "fałsz"),
        ("ano", "ne"),
        ("pravda", "nepravda"),
        ("áno", "nie"),
        ("igen", "nem"),
        ("i", "n"),
    ),
    *(("igaz", "hamis"), ("da", "nu"), ("adevărat", "fals"), ("da", "ne"), ("да", "нет"), ("истина", "ложь")),
    *(
        ("так", "ні"),
        ("да", "не"),
        ("ναι", "όχι"),
        ("αληθής", "ψευδής"),
        ("是", "否"),
        ("真", "假"),
        ("对", "错"),
    ),
    *(("有", "无"), ("はい", "いいえ"), ("예", "아니요"), ("예", "아니오"), ("כן", "לא"), ("نعم", "لا")),
)
_LONGEST: Final = 80  # characters


@lru_cache(maxsize=4096)
def fold_word(text: str) -> str:
    """Fold case and accents of a word, including the Turkish I, so that HAYIR equals hayir."""
    plain = unicodedata.normalize("NFKD", text.strip().replace("ı", "i")).casefold()
    letters = "".join(it for it in plain if not unicodedata.combining(it)).replace("ı", "i")
    return unicodedata.normalize("NFC", letters)  # NFKD takes syllables of Hangul apart


@dataclass(frozen=True, slots=True)
class BooleanWords(Format):
    """Format of Booleans as two words, in any letter case."""

    true: str
    false: str

    @property
    def spelling(self) -> str:
        return f"{self.true}/{self.false}"

    @property
    def types(self) -> tuple[Edm, ...]:
        return (Edm.BOOLEAN,)

    @property
    def singular(self) -> str:
        return f"{self.true} or {self.false}"

    @property
    def plural(self) -> str:
        return self.singular

    def includes(self, other: Format) -> bool:
        """Return whether another format has the same words, in any letter case."""
        return isinstance(other, BooleanWords) and (
            (fold_word(self.true), fold_word(self.false)) == (fold_word(other.true), fold_word(other.false))
        )

    def rewrite(self, text: str) -> str:
        word = fold_word(text) if len(text) <= _LONGEST else ""
        if word == fold_word(self.true):
            return "true"
        if word == fold_word(self.false):
            return "false"
        raise NotInFormat


def read_boolean_words(text: str) -> BooleanWords | None:
    """Parse a Boolean format such as ja/nein; None if it is malformed."""
    true, separator, false = (part.strip() for part in text.partition("/"))
    if not separator or not true or not false or separator in false or fold_word(true) == fold_word(false):
        return None
    return BooleanWords(true, false)
