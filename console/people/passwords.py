"""Which passwords are too easy to guess: common ones, and those that are made of the words of this product."""

import re
from typing import Final

from django.contrib.auth.password_validation import CommonPasswordValidator
from django.core.exceptions import ValidationError

# docs/security.md names them
WORDS: Final = (
    "account", "admin", "administrator", "azure", "azurite", "changeme", "console", "cosmos", "devstoreaccount",
    "letmein", "owner", "parola", "passwort", "password", "root", "secret", "server", "storage", "table", "tablero",
    "tables", "welcome",
)  # fmt: skip
_ONLY_WORDS: Final = re.compile(rf"[\W\d_]*(?:(?:{'|'.join(WORDS)})[\W\d_]*)+")
_ENDS: Final = re.compile(r"^[\W\d_]+|[\W\d_]+$")
_SPELLINGS: Final = str.maketrans("01345@$", "oieasas")


class PasswordValidator(CommonPasswordValidator):
    """Refuses common passwords, and those of nothing but such words, digits and signs."""

    def validate(self, password: str, user: object = None) -> None:
        super().validate(password, user)  # type: ignore[arg-type]
        plain = password.lower()
        spelled_out = _ENDS.sub("", plain).translate(_SPELLINGS)
        if _ONLY_WORDS.fullmatch(plain) or _ONLY_WORDS.fullmatch(spelled_out):
            raise ValidationError(self.get_error_message(), code="password_too_common")
