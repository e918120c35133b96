"""First run: the server prints a setup link that works once and creates the first admin."""

from collections.abc import Iterator

from django.db import transaction
from django.utils import timezone

from console.models import Setup, User
from console.people import link_tokens

LINKS_KEPT = 32  # each start prints a new link; older ones stay valid


def announcement(origin: str) -> Iterator[str]:
    """Yield the console lines of the startup message."""
    # addresses as they are: resolving their names would load every page, half a second before the first answer
    if is_open():
        yield f"Console:           {origin}/ui/setup/#token={issue()}"
        yield "                   Open this link to create the first admin. It works once."
    else:
        yield f"Console:           {origin}/ui/"


def is_open() -> bool:
    return not Setup.objects.exclude(done_at=None).exists() and not User.objects.exists()


@transaction.atomic
def issue() -> str:
    """Create a token for a setup link; only its hash is stored."""
    token = link_tokens.new()
    setup = _locked()
    setup.token_hashes = [*setup.token_hashes, link_tokens.hash_of(token)][-LINKS_KEPT:]
    setup.save()
    return token


def accepts(token_hash: str) -> bool:
    if not is_open():
        return False
    setup = Setup.objects.filter(pk=Setup.ONLY).first()
    return setup is not None and token_hash in setup.token_hashes


@transaction.atomic
def finish(token_hash: str, username: str, password: str, language: str) -> User | None:
    """Create the first admin and close setup; return None if another request did so first."""
    setup = _locked()
    if setup.done_at is not None or token_hash not in setup.token_hashes or User.objects.exists():
        return None
    setup.done_at = timezone.now()
    setup.token_hashes = []
    setup.save()
    return User.objects.create_user(username, password, is_admin=True, language=language)


def _locked() -> Setup:
    Setup.objects.get_or_create(pk=Setup.ONLY)
    return Setup.objects.select_for_update().get(pk=Setup.ONLY)
