"""The labels of roles."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from storage.domain.access.roles import Role, read_role

LABELS: Final = {
    Role.VIEWER: _("Viewer"),
    Role.EDITOR: _("Editor"),
    Role.MAINTAINER: _("Maintainer"),
    Role.OWNER: _("Owner"),
}
CHOICES: Final[list[tuple[int, str | Promise]]] = [(role.value, label) for role, label in LABELS.items()]


def label(role: int) -> str:
    """Return the label of a role, "" for an unknown number."""
    known = read_role(role)
    return "" if known is None else str(LABELS[known])
