"""Search for tables, policies and tokens in many accounts by part of their name."""

import operator
import unicodedata
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final

from django.db.models import (
    Case,
    Func,
    IntegerField,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
    prefetch_related_objects,
)
from django.db.models.lookups import Contains

from storage.domain.values.kinds import AccountKind
from storage.models import Account, RegisteredSas, StoredAccessPolicy, Table

_FUZZY_LENGTH: Final = 3  # characters of a word at least; fewer are in most names


def has_text(field: str, text: str) -> Q:
    """Return the condition that a field contains a text, ignoring case and diacritics."""
    return Q(**{f"{field}__icontains": text}) | Q(Contains(Folded(field), Value(fold(text))))


class Folded(Func):
    """Database function that folds case and diacritics like ``fold``."""

    template = "replace(lower(regexp_replace(normalize(%(expressions)s, NFKD), '[\u0300-\u036f]', '', 'g')), 'ı', 'i')"
    output_field = TextField()


def fold(text: str) -> str:
    """Fold case and diacritics, including the Turkish i, so that "gecmis" matches "Geçmiş"."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).replace("ı", "i")


def tables(
    accounts: QuerySet[Account],
    *words: str,
    first: Sequence[Table] = (),
    top: int = 20,
    is_fuzzy: bool = False,
) -> list[Table]:
    """Search tables that contain a word, in any letter case, also one with marks that no name has.

    Exact matches come first, then those in ``first``, then prefixes, then by name; last, if the search is fuzzy, those
    that only have the letters of a word in its order.
    """
    # names are ASCII, so lower() does not depend on a language; in Cosmos accounts they are not folded
    lower_words = [*{form for word in words for form in (word.lower(), fold(word))}]
    containing = _any(Q(folded_name__contains=word) for word in lower_words)
    rank = Case(
        When(folded_name__in=lower_words, then=Value(0)),
        *(When(containing, pk=table.pk, then=Value(1 + place)) for place, table in enumerate(first)),
        When(_any(Q(folded_name__startswith=word) for word in lower_words), then=Value(1 + len(first))),
        When(containing, then=Value(2 + len(first))),
        default=Value(3 + len(first)),
        output_field=IntegerField(),
    )
    shown = accounts.order_by()
    containing_it = containing
    if is_fuzzy:
        fuzzy = (
            word for word in lower_words if len(word) >= _FUZZY_LENGTH and word.isascii() and word.isalnum()
        )
        containing_it |= _any(Q(folded_name__regex=".*".join(word)) for word in fuzzy)
    cosmos = shown.filter(kind=AccountKind.COSMOS).values("pk")
    if cosmos.exists():
        containing_it |= Q(account__in=cosmos) & _any(Q(name__icontains=word) for word in words)
    matching = Table.objects.existing().filter(containing_it, account__in=shown.values("pk"))
    rows = list(matching.order_by(rank, "folded_name", "account_id")[:top])
    # joining all matches would double the time
    prefetch_related_objects(rows, "account")
    return rows


def _any(conditions: Iterable[Q]) -> Q:
    return reduce(operator.or_, conditions, Q(pk__in=[]))


def policies(accounts: QuerySet[Account], containing: str, *, top: int = 20) -> list[StoredAccessPolicy]:
    """Search policies by identifier; with their tables and accounts."""
    matching = StoredAccessPolicy.objects.filter(
        table__account__in=accounts.order_by().values("pk"),
        table__deleted_at=None,
    ).filter(has_text("identifier", containing))
    return list(matching.select_related("table__account").order_by("identifier", "table__folded_name")[:top])


def tokens(accounts: QuerySet[Account], containing: str, *, top: int = 20) -> list[RegisteredSas]:
    """Search shared access signatures by label, newest first; with their accounts."""
    shown = accounts.order_by().values("pk")
    found = RegisteredSas.objects.filter(has_text("label", containing), account__in=shown)
    return list(found.select_related("account").order_by("-created_at", "-pk")[:top])
