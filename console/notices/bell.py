"""Notice bell in the top bar: the user's notices and number of unseen ones."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.http import HttpRequest

from console.models import User
from console.notices.presentation import ShownNotice
from storage.notices import readers

_SHOWN: Final = 8
_COUNTED: Final = 100


@dataclass(frozen=True)
class Bell:
    """Bell, loaded lazily as partial responses have no top bar."""

    user: User

    @cached_property
    def _current(self) -> list[ShownNotice]:
        return [ShownNotice(*it) for it in readers.current_with_news(self.user, _COUNTED)]

    @property
    def notices(self) -> list[ShownNotice]:
        return self._current[:_SHOWN]

    @property
    def others(self) -> int:
        return len(self._current) - len(self.notices)

    @property
    def new(self) -> int:
        return sum(it.is_new for it in self._current)

    @property
    def number(self) -> str:
        return "99+" if self.new >= _COUNTED else str(self.new or "")


def context(request: HttpRequest) -> dict[str, Any]:
    # a request that fails early has no user yet
    user = getattr(request, "user", None)
    return {"notice_bell": Bell(user)} if user is not None and user.is_authenticated else {}
