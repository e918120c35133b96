"""How often a token may ask, counted over all processes."""

from django.conf import settings
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from storage.operations import api_tokens


class PerToken(BaseThrottle):
    seconds = 0

    def allow_request(self, request: Request, view: APIView) -> bool:
        self.seconds = api_tokens.seconds_to_wait(
            request.auth, settings.API_REQUESTS_PER_MINUTE, timezone.now()
        )
        return self.seconds == 0

    def wait(self) -> float:
        return self.seconds
