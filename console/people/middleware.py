"""Keep the list of sessions up to date."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from console.people import sessions


def last_seen(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """So that people find their sessions in the list of them."""

    def answer(request: HttpRequest) -> HttpResponse:
        if request.user.is_authenticated and request.session.session_key:
            sessions.see(request)
        return get_response(request)

    return answer
