"""The process that examines a restored database: whether this version can use it, and the secret opens its keys."""

import os
import sys


def main() -> str:
    """Return a sentence about its version, or an empty string; ends the process with a sentence if it is of no use."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    import django

    django.setup()
    from storage.accounts import sealed_keys
    from storage.accounts.refusals import AccountError
    from storage.health import database_version

    if sentence := database_version.explain_newer():
        sys.exit(sentence)
    if database_version.is_older():  # its accounts cannot be read yet
        return "The database is of an older version, and the server will upgrade it at its start."
    try:
        sealed_keys.check_secret()
    except AccountError as error:
        sys.exit(str(error))
    return ""


if __name__ == "__main__":
    print(main())
