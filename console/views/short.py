"""Addresses of which the server keeps what they say."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from storage.models import Account, Table


def gone(request: HttpRequest, account: Account, table: Table) -> HttpResponse:
    """What it stood for was not asked for in half a year, or it never stood for anything."""
    context = {"account": account, "table": table}
    return render(request, "console/queries/expired.html", context, status=404)
