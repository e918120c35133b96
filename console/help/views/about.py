"""Help pages: about, shortcuts, limits, documentation and API reference."""

import platform
from dataclasses import dataclass
from typing import Final

from django import get_version
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from console.help import api_reference, contents, documents, search, vendored
from console.site.addresses import read_text
from console.site.responses import render_page
from storage.health import release
from storage.rest import problems


@login_required
def about(request: HttpRequest) -> HttpResponse:
    """Show versions, and the licenses of bundled packages."""
    context = {
        "version": release.version(),
        "database": _database(),
        "python": platform.python_version(),
        "django": get_version(),
        "packages": vendored.packages(),
        "suffixes": settings.HOST_SUFFIXES,
    }
    return render(request, "console/help/about.html", context)


def _database() -> str:
    connection.ensure_connection()
    number: int = connection.pg_version  # type: ignore[attr-defined]
    return f"{number // 10_000}.{number % 10_000}"


@login_required
def shortcuts(request: HttpRequest) -> HttpResponse:
    return render(request, "console/help/shortcuts.html")


LONGEST: Final = 100  # text of a search


@dataclass(frozen=True, slots=True)
class Limit:
    item: str | Promise
    limit: str | Promise


LIMITS: Final = (
    Limit(_("Table name"), _("3 to 63 letters and digits, starting with a letter; case-insensitive")),
    Limit(
        _("PartitionKey and RowKey"),
        _("1,024 UTF-16 code units each, without / \\ # ? and control characters"),
    ),
    Limit(_("Properties per entity"), _("252, besides PartitionKey, RowKey and Timestamp")),
    Limit(_("Property name"), _("255 UTF-16 code units; a C# identifier")),
    Limit(_("Entity size"), "1 MiB"),
    Limit(_("String and Binary"), _("64 KiB each; strings count two bytes per UTF-16 code unit")),
    Limit(_("DateTime"), _("From 1601-01-01, in steps of 100 ns")),
    Limit(_("Batch"), _("100 changes of one partition, 4 MiB")),
    Limit(_("Query page"), _("1,000 entities, or what is found within 5 seconds")),
    Limit(_("Filter conditions"), _("No limit; 15 on Azure")),
    Limit(_("Stored access policies per table"), "5"),
    Limit(_("CORS rules per account"), "5"),
)


@login_required
def limits(request: HttpRequest) -> HttpResponse:
    return render(request, "console/help/limits.html", {"limits": LIMITS})


@login_required
def index(request: HttpRequest) -> HttpResponse:
    """List the documents by task, or search them with ?q=."""
    text = read_text(request.GET, "q", longest=LONGEST)
    matches = search.find(text)
    context = {
        "text": text,
        "matches": matches[: search.MOST],
        "number": len(matches),
        "groups": contents.groups(),
    }
    return render_page(request, page="console/help/index.html", context=context)


@login_required
def document(request: HttpRequest, page: str) -> HttpResponse:
    """Show one page of the documentation."""
    if page == documents.INDEX:
        return redirect("help:index")
    if page not in contents.entries():
        raise Http404
    context = {"document": documents.read(page), "page": page, "groups": contents.groups()}
    return render(request, "console/help/document.html", context)


@login_required
@require_safe
def api(request: HttpRequest) -> HttpResponse:
    """Show the reference of the management API."""
    context = {
        "groups": api_reference.groups(),
        "kinds": problems.PROBLEM_TYPES,
        "where": f"{request.scheme}://{request.get_host()}",
    }
    return render(request, "console/help/api_docs/show.html", context)
