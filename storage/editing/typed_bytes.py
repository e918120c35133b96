"""Typed bytes: hexadecimal, base64 or UTF-8 text."""

import base64
from collections.abc import Callable, Mapping
from typing import Final

from storage.domain.values.edm import BINARY_LIMIT
from storage.editing.input_context import InputContext
from storage.editing.invalid_text import InvalidText, TextFault, TextForm

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")
_HEX: Final = frozenset("0123456789abcdefABCDEF")


def read(text: str, form: TextForm, context: InputContext) -> bytes:
    data = _BYTES[form](text)
    check_length(len(data), context)
    return data


def check_length(length: int, context: InputContext) -> None:
    """Raise InvalidText if a binary is too long; in Cosmos accounts only the entity limits it."""
    if not context.is_cosmos and length > BINARY_LIMIT:
        raise InvalidText(TextFault.TOO_LONG, size=length)


def _read_hex(text: str) -> bytes:
    start = 2 if text[:2].lower() == "0x" else 0
    digits = []
    for position, character in enumerate(text[start:], start + 1):
        if character in _HEX:
            digits.append(character)
        elif not character.isspace():
            raise InvalidText(TextFault.NOT_HEX, position=position)
    if len(digits) % 2:
        raise InvalidText(TextFault.HALF_BYTE)
    return bytes.fromhex("".join(digits))


def _read_base64(text: str) -> bytes:
    """Parse base64 in the standard or URL alphabet, with or without padding."""
    content = text.rstrip("= \t\r\n")
    digits = []
    for position, character in enumerate(content, 1):
        if character in _BASE64:
            digits.append(character)
        elif not character.isspace():
            raise InvalidText(TextFault.NOT_BASE64, position=position)
    if len(digits) % 4 == 1:
        raise InvalidText(TextFault.BASE64_LENGTH)
    joined = "".join(digits).replace("-", "+").replace("_", "/")
    return base64.b64decode(joined + "=" * (-len(joined) % 4))


def _read_utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidText(TextFault.SURROGATE, position=error.start + 1) from None


_BYTES: Final[Mapping[TextForm, Callable[[str], bytes]]] = {
    TextForm.HEX: _read_hex,
    TextForm.BASE64: _read_base64,
    TextForm.TEXT: _read_utf8,
}


def write(data: bytes, form: TextForm) -> str:
    if form is TextForm.BASE64:
        return base64.b64encode(data).decode()
    if form is TextForm.HEX:
        return data.hex()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidText(TextFault.NOT_UTF8, position=error.start + 1) from None
