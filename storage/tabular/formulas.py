"""Escaping of texts that a spreadsheet would run as a formula, without loss.

https://owasp.org/www-community/attacks/CSV_Injection
"""

import re
from typing import Final

# spreadsheets run text that starts like this as a formula, in some locales also in the wide forms of these characters
_STARTS: Final = r"[=+\-@\t\r\n＝＋－＠]"
_ESCAPED: Final = re.compile(f"'+{_STARTS}")
# text that looks escaped is escaped again, so that each text has one escaped form
_FORMULA: Final = re.compile(f"'*{_STARTS}")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def escape_formula(text: str) -> str:
    """Prefix an apostrophe to text that a spreadsheet would run as a formula; numbers are kept."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet would run a text as a formula, or take an apostrophe for an escape."""
    return _FORMULA.match(text) is not None


def unescape_formula(text: str) -> str:
    """Reverse escape_formula."""
    return text[1:] if text.startswith("'") and _ESCAPED.match(text) else text
