"""The lines with which a script resets an account, as its API takes them."""

from django.http import HttpRequest
from django.urls import reverse

from storage.branches import branches
from storage.models import Account, Snapshot


def reset_lines(request: HttpRequest, account: Account, snapshot: Snapshot | None) -> str:
    """Return a curl command: of a branch to where it began, of another account to a snapshot."""
    is_branch = branches.find(account) is not None
    name = snapshot.name if snapshot is not None else "ci-baseline"
    body = "{}" if is_branch and snapshot is None else f'{{"snapshot": "{name}"}}'
    address = request.build_absolute_uri(reverse("api-reset", args=[account.name]))
    return (
        f"curl -fsS -X POST \\\n  {address} \\\n"
        '  -H "Authorization: Bearer $TABLERO_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )
