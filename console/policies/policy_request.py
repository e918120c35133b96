"""What is asked of the policies of one table, and what the pages about them show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse

from console.policies import forms, policy_effects, policy_page, policy_presets
from console.policies.forms import Draft, PolicyDraft
from console.site.access import account_context, user_of
from console.site.typed_text import now_of
from storage.domain.access.policies import POLICY_LIMIT, AccessPolicy, SignedIdentifier
from storage.domain.access.roles import Capability, may
from storage.domain.sas.known import KnownToken
from storage.editing.policy_effects import predict_effects
from storage.models import Account, Table
from storage.operations import policies, sas

NOTHING_RENAMED: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Side:
    """A policy of one of the two sets; ``is_different`` where the other has it not, or not so."""

    draft: PolicyDraft
    is_different: bool

    @property
    def policy(self) -> AccessPolicy | None:
        return self.draft.basis.policy


@dataclass(frozen=True)
class Asked:
    """A request about the policies of one table."""

    request: HttpRequest
    account: Account
    table: Table

    @property
    def zone(self) -> str:
        return user_of(self.request).time_zone

    @property
    def may_edit(self) -> bool:
        place = account_context(self.request)
        is_allowed = place is not None and may(place.role, Capability.MANAGE_ACCESS)
        return is_allowed and not self.account.read_only

    def address(self, *, xml: bool) -> str:
        path = reverse("policies:show", args=(self.account.name, self.table.name))
        return f"{path}?view=xml" if xml else path

    def stored(self) -> list[SignedIdentifier]:
        return policies.stored(self.account.pk, self.table.folded_name)

    @cached_property
    def tokens(self) -> list[KnownToken]:
        known = sas.known(self.account, now_of(self.request))
        return policy_effects.of_table(known, self.table.folded_name)

    def of_draft(self, draft: Draft) -> dict[str, Any]:
        now = draft.now()
        read = draft.read(now)
        return {
            "draft": draft,
            "rows": policy_page.rows(draft, self.tokens, now),
            "limit": POLICY_LIMIT,
            "left": POLICY_LIMIT - len(draft.rows),
            "operations": policy_page.OPERATIONS,
            "letters": policy_effects.LETTERS,
            "starts": policy_presets.STARTS,
            "expiries": policy_presets.EXPIRIES,
            "templates": policy_presets.TEMPLATES,
            "preview": self.preview(draft.seen, read, policy_page.renamed(draft, read)),
        }

    def preview(
        self,
        before: Sequence[SignedIdentifier],
        after: Sequence[SignedIdentifier],
        renamed: Mapping[str, str] = NOTHING_RENAMED,
    ) -> policy_effects.Preview:
        now = now_of(self.request)
        ordered = policy_effects.ordered(self.tokens, (*before, *after))
        return policy_effects.preview(predict_effects(before, after, ordered, now), after, renamed, now)

    def sides(
        self, identifiers: Sequence[SignedIdentifier], others: Sequence[SignedIdentifier]
    ) -> list[Side]:
        """A set as it is compared with another one."""
        rows = forms.write_draft(identifiers, self.zone).rows
        return [Side(row, it not in others) for row, it in zip(rows, identifiers, strict=True)]
