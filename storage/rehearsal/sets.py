"""Ready sets of rules, which every account has."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from storage.domain.requests.targets import ACCOUNT_TARGET, PARTITION_TARGET
from storage.domain.translation import mark as _
from storage.rehearsal.rules import ANY, Effect, Per, Rule, When


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Named set of rules; ``text`` says in a sentence what it does."""

    name: str
    text: str
    rules: tuple[Rule, ...]


_WRITES: Final = ("writes",)

_READY: Final = (
    RuleSet(
        "throttled",
        _("Every fifth request or so is answered with 503 ServerBusy."),
        (Rule("throttle", Effect.THROTTLE, When(share=0.2)),),
    ),
    RuleSet(
        "flaky",
        _(
            "Some requests fail with 500, a closed or a reset connection, or half an answer. No write is done twice."
        ),
        (
            Rule("internal-error", Effect.ERROR, When(share=0.05)),
            Rule("closed", Effect.AMBIGUOUS_UNAPPLIED, When(share=0.03), {"answer": "close"}),
            Rule("reset", Effect.AMBIGUOUS_UNAPPLIED, When(share=0.03), {"answer": "reset"}),
            Rule("cut", Effect.CUT_ANSWER, When(operations=("reads",), share=0.05)),
        ),
    ),
    RuleSet(
        "ambiguous",
        _("Some writes get 500 or no answer, one half of them after they were committed."),
        (
            Rule("applied", Effect.AMBIGUOUS_APPLIED, When(_WRITES, share=0.1), {"answer": ANY}),
            Rule("unapplied", Effect.AMBIGUOUS_UNAPPLIED, When(_WRITES, share=0.1), {"answer": ANY}),
        ),
    ),
    RuleSet(
        "short-pages",
        _("Most pages of queries end early, some are empty, and all of these have a continuation token."),
        (
            Rule("at-partition", Effect.SHORT_PAGE, When(share=0.3), {"at": "partition"}),
            Rule("anywhere", Effect.SHORT_PAGE, When(share=0.5)),
        ),
    ),
    RuleSet(
        "far-away",
        _("Every request takes 110 ms more, one in a hundred 400 ms or more, as from another region."),
        (Rule("distance", Effect.DELAY, When(), {"p50": 110.0, "p99": 400.0}),),
    ),
    RuleSet(
        "stale-secondary",
        _("The secondary address shows the account as it was two minutes ago."),
        (Rule("lag", Effect.STALE_SECONDARY),),
    ),
    RuleSet(
        "slow-policies",
        _("Changed stored access policies hold after 30 seconds."),
        (Rule("late", Effect.LATE_POLICIES),),
    ),
    RuleSet(
        "bad-day",
        _(
            "A bit of everything: throttling, failures, lost answers, short pages, delays and a stale secondary."
        ),
        (
            Rule("slow", Effect.DELAY, When(), {"p50": 10.0, "p99": 250.0}),
            Rule("throttle", Effect.THROTTLE, When(share=0.05)),
            Rule("internal-error", Effect.ERROR, When(share=0.02)),
            Rule("applied", Effect.AMBIGUOUS_APPLIED, When(_WRITES, share=0.04), {"answer": ANY}),
            Rule("unapplied", Effect.AMBIGUOUS_UNAPPLIED, When(_WRITES, share=0.03), {"answer": ANY}),
            Rule("cut", Effect.CUT_ANSWER, When(operations=("reads",), share=0.02)),
            Rule("short-page", Effect.SHORT_PAGE, When(share=0.4)),
            Rule("lag", Effect.STALE_SECONDARY),
        ),
    ),
    RuleSet(
        "azure-limits",
        _(
            "More than 2,000 entities a second in a partition, or 20,000 in the account, get 503; a scale lowers both."
        ),
        (
            Rule("partition", Effect.THROTTLE, When(rate=PARTITION_TARGET, per=Per.PARTITION)),
            Rule("account", Effect.THROTTLE, When(rate=ACCOUNT_TARGET, per=Per.ACCOUNT)),
        ),
    ),
)
READY: Final[Mapping[str, RuleSet]] = {one.name: one for one in _READY}
