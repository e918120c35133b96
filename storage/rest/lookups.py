"""Look-ups of views: what does not exist is answered by 404."""

from typing import TypeVar

from django.http import Http404

T = TypeVar("T")


def or_404(found: T | None) -> T:
    """Return what was found; raises Http404 for None, as Django's ``get_object_or_404`` does for rows."""
    if found is None:
        raise Http404
    return found
