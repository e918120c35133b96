"""Subprocess that examines a restored database: version compatibility, and whether the secret opens its keys."""

import os
import sys


def main() -> str:
    """Return a note on the version or an empty string; exits with an error if the database is unusable."""
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
