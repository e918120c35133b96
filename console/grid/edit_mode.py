"""When a changed cell is saved: at once, or with others when its editor says so."""

from django.http import HttpRequest

from console.models import EditMode
from console.site.access import user_of
from storage.models import Account


def of(request: HttpRequest, account: Account) -> EditMode:
    """In a protected account changes are collected, whatever its reader chose."""
    return EditMode.STAGED if account.protected else EditMode(user_of(request).edit_mode)
