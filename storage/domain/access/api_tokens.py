"""The format of management API tokens, which secret scanners can recognize.

`tbl_`, 36 random letters and digits, and a checksum of six, by which a mistyped token is refused without a look-up.
"""

import re
import zlib
from typing import Final

PREFIX: Final = "tbl_"
ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_LENGTH: Final = 36  # more than 200 bits
SHOWN_LENGTH: Final = 8  # the prefix and four characters, which identify a token in lists
_CHECKSUM_LENGTH: Final = 6

_FORM = re.compile(f"{PREFIX}[0-9A-Za-z]{{{RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")


def write_token(characters: str) -> str:
    """Build a token from random characters of the alphabet."""
    return f"{PREFIX}{characters}{_checksum(characters)}"


def is_token(text: str) -> bool:
    if not _FORM.fullmatch(text):
        return False
    characters = text[len(PREFIX) : -_CHECKSUM_LENGTH]
    return text == write_token(characters)


def visible_prefix(token: str) -> str:
    return token[:SHOWN_LENGTH]


def _checksum(characters: str) -> str:
    number = zlib.crc32(characters.encode())
    digits = ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
