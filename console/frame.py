"""What the frame around every page needs: the appearance, and where its links lead."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from console import appearance


def context(request: HttpRequest) -> dict[str, Any]:
    return {"appearance": appearance.read(request), "languages": settings.LANGUAGES}
