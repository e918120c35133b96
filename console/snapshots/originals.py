"""Unmasked original values found in a branch."""

from django.utils.translation import gettext as _

from storage.account_files.account_building import Original


def describe_original(found: Original) -> str:
    text = _("%(place)s has original values that should be masked, so the branch stays frozen.")
    return text % {"place": f"{found.table}.{found.property}"}
