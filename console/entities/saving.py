"""Applies what a draft changes, all of it or nothing: every editor of entities saves by this, and shows the refusal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from console.site.refusals import describe_refusal
from storage.domain.errors import (
    ChangeSetError,
    EntityAlreadyExists,
    ResourceNotFound,
    StorageError,
    UpdateConditionNotSatisfied,
)

T = TypeVar("T")
_MEANWHILE: Final = (EntityAlreadyExists, ResourceNotFound, UpdateConditionNotSatisfied)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was saved; ``index``: of the change that failed, None if it is not about one of them."""

    error: StorageError
    index: int | None = None

    @property
    def is_conflict(self) -> bool:
        """Whether another change came first."""
        return isinstance(self.error, _MEANWHILE)

    @property
    def is_of_deleted(self) -> bool:
        return isinstance(self.error, ResourceNotFound)

    @property
    def text(self) -> str:
        return describe_refusal(self.error)


def attempt(apply: Callable[[], T]) -> T | Refusal:
    """Call what makes the changes; return its result, or the refusal of the service."""
    try:
        return apply()
    except ChangeSetError as failure:
        return Refusal(failure.error, failure.index)
    except StorageError as error:
        return Refusal(error)
