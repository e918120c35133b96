"""Short links to pages of an account, for users with access to it."""

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import Resolver404, resolve
from django.views.decorators.http import require_http_methods, require_safe

from console.site.access import user_of
from console.site.addresses import is_console_path, path_of, public_url, split_url
from console.site.refusals import describe_refusal
from console.site.responses import is_script
from storage.accounts import accounts
from storage.domain.refusals import Reason
from storage.links import links
from storage.links.links import LinkRefused
from storage.models import Account, ShortLink
from storage.people.members import role_in

_OF_ACCOUNTS = "/ui/a/"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Create and show the link of an address; scripts get JSON."""
    # without scripts, the page that the link was on
    given = request.GET.get("address", request.headers.get("Referer", ""))
    address = request.POST.get("address", given).strip()
    context: dict[str, object] = {"address": address, "days": links.RETENTION_DAYS}
    if request.method == "POST":
        try:
            context["link"] = public_url(request, path_of("links:follow", _keep(request, address).key))
        except LinkRefused as refused:
            context["problem"] = describe_refusal(refused)
    if is_script(request) and request.method == "POST":
        if "link" in context:
            return JsonResponse({"link": context["link"]})
        return JsonResponse({"error": str(context["problem"])}, status=422)
    return render(request, "console/links/new.html", context, status=422 if "problem" in context else 200)


@require_safe
@login_required
def follow(request: HttpRequest, key: str) -> HttpResponse:
    """Redirect to the page of a link, which checks the required role itself."""
    link = links.find(key)
    if link is None or accounts.find(link.account.name) is None:
        return render(request, "console/links/missing.html", {"days": links.RETENTION_DAYS}, status=404)
    if role_in(user_of(request), link.account) is None:
        return render(request, "console/links/missing.html", {"is_closed": True}, status=403)
    # the address is below that of the account, and leads to no other host
    return HttpResponseRedirect(f"{_root(link.account)}{link.address}")


def _keep(request: HttpRequest, address: str) -> ShortLink:
    """Store the address of a page, possibly a full URL of this server; raises LinkRefused."""
    split = split_url(address)
    if split.netloc and split.netloc != request.get_host():
        raise LinkRefused(Reason.NO_SHORT_LINK)
    path = f"{split.path}?{split.query}" if split.query else split.path
    account = _account(request, split.path) if is_console_path(path) else None
    if account is None:
        raise LinkRefused(Reason.NO_SHORT_LINK)
    return links.keep(account, path.removeprefix(_root(account)))


def _account(request: HttpRequest, path: str) -> Account | None:
    """Return the account of a page's address, if the user has access; None otherwise."""
    try:
        names = resolve(path).kwargs
    except (Resolver404, Http404):
        return None
    account = accounts.find(names.get("account", ""))
    if account is None or not path.startswith(_root(account)) or role_in(user_of(request), account) is None:
        return None
    return account


def _root(account: Account) -> str:
    return f"{_OF_ACCOUNTS}{account.name}/"
