"""Theme, density and sidebar of a browser, in cookies so that the first paint is right."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import check_for_language
from django.views.decorators.http import require_POST

from console.models import Density, Theme, User
from console.site.addresses import is_console_path

THEME_COOKIE = "tablero_theme"
DENSITY_COOKIE = "tablero_density"
SIDEBAR_COOKIE = "tablero_sidebar"  # written by JavaScript
NARROW_COOKIE = "tablero_narrow"  # written by JavaScript
AGE = 400 * 24 * 3600  # seconds; no browser keeps a cookie longer


@dataclass(frozen=True, slots=True)
class Appearance:
    theme: Theme = Theme.SYSTEM
    density: Density = Density.DEFAULT
    sidebar_closed: bool = False
    has_narrow_grid: bool = False  # whether a narrow screen shows entities as a grid, not as a list


def read(request: HttpRequest) -> Appearance:
    """Read the cookies; unknown values fall back to defaults."""
    theme = request.COOKIES.get(THEME_COOKIE, "")
    density = request.COOKIES.get(DENSITY_COOKIE, "")
    return Appearance(
        Theme(theme) if theme in set(Theme) else Theme.SYSTEM,
        Density(density) if density in set(Density) else Density.DEFAULT,
        request.COOKIES.get(SIDEBAR_COOKIE) == "closed",
        request.COOKIES.get(NARROW_COOKIE) == "grid",
    )


@login_not_required
@require_POST
def change(request: HttpRequest) -> HttpResponse:
    """Store the appearance chosen in a form, and return to its page."""
    target = request.POST.get("next", "")
    chosen = {name: request.POST.get(name, "") for name in ("language", "theme", "density")}
    if isinstance(request.user, User):
        request.user.remember(**chosen)
    return remember(redirect(target if is_console_path(target) else "home:index"), **chosen)


def remember(
    response: HttpResponse, *, language: str = "", theme: str = "", density: str = ""
) -> HttpResponse:
    """Set cookies for these choices; empty ones are left unchanged."""
    if language and check_for_language(language):
        _set(response, settings.LANGUAGE_COOKIE_NAME, language)
    if theme in set(Theme):
        _set(response, THEME_COOKIE, theme)
    if density in set(Density):
        _set(response, DENSITY_COOKIE, density)
    return response


def _set(response: HttpResponse, name: str, value: str) -> None:
    response.set_cookie(
        name,
        value,
        max_age=AGE,
        path=settings.COOKIE_PATH,
        httponly=True,
        samesite="Lax",
    )
