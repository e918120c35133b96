"""Request about the policies of one table, with the template context of its pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from console.access.policies import notes, presets
from console.access.policies.drafts import PolicyDraft, draft_set
from console.access.policies.effects import (
    LETTERS,
    Narrator,
    Preview,
    order_tokens,
    tokens_of_table,
)
from console.access.policies.forms import BasePolicyFormSet
from console.site.access import role_of
from console.site.typed_text import local_now
from storage.access import policies, sas
from storage.domain.access.policies import POLICY_LIMIT, AccessPolicy, SignedIdentifier
from storage.domain.access.roles import Capability, may
from storage.domain.sas.known import KnownToken
from storage.editing.policy_effects import predict_effects
from storage.models import Table

_NONE_RENAMED: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ComparedPolicy:
    """Policy in one of two conflicting sets."""

    draft: PolicyDraft
    is_different: bool  # from the other set

    @property
    def policy(self) -> AccessPolicy | None:
        return self.draft.basis.policy


@dataclass(frozen=True)
class PolicyRequest:
    request: HttpRequest
    table: Table

    @property
    def zone(self) -> str:
        return timezone.get_current_timezone_name()

    @property
    def may_edit(self) -> bool:
        return may(role_of(self.request), Capability.MANAGE_ACCESS) and not self.table.account.read_only

    def page_address(self, *, xml: bool) -> str:
        path = reverse("policies:show", args=(self.table.account.name, self.table.name))
        return f"{path}?view=xml" if xml else path

    def stored(self) -> list[SignedIdentifier]:
        return policies.stored(self.table)

    @cached_property
    def tokens(self) -> list[KnownToken]:
        known = sas.known(self.table.account, local_now())
        return tokens_of_table(known, self.table.folded_name)

    def form_context(self, formset: BasePolicyFormSet) -> dict[str, Any]:
        draft, identifiers = formset.draft, formset.identifiers
        noted = notes.note_policies(draft, self.tokens, formset.now)
        return {
            "formset": formset,
            "zone": draft.zone,
            "rows": [{"form": form, "notes": it} for form, it in zip(formset.forms, noted, strict=True)],
            "limit": POLICY_LIMIT,
            "left": POLICY_LIMIT - len(draft.rows),
            "operations": notes.OPERATIONS,
            "letters": LETTERS,
            "starts": presets.STARTS,
            "expiries": presets.EXPIRIES,
            "templates": presets.TEMPLATES,
            "preview": self.preview(draft.seen, identifiers, notes.find_renamed(draft, identifiers)),
        }

    def preview(
        self,
        before: Sequence[SignedIdentifier],
        after: Sequence[SignedIdentifier],
        renamed: Mapping[str, str] = _NONE_RENAMED,
    ) -> Preview:
        now = local_now()
        effects = predict_effects(before, after, order_tokens(self.tokens, (*before, *after)), now)
        return Narrator({it.identifier: it.policy for it in after}, renamed, now).preview(effects)

    def compare(
        self, identifiers: Sequence[SignedIdentifier], others: Sequence[SignedIdentifier]
    ) -> list[ComparedPolicy]:
        rows = draft_set(identifiers, self.zone).rows
        return [ComparedPolicy(row, it not in others) for row, it in zip(rows, identifiers, strict=True)]
