"""Signing in and out, as allauth does it."""

from typing import Any

from allauth.account import views
from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponse

from console import appearance, setup
from console.models import User


class SignIn(views.LoginView):  # type: ignore[misc]
    template_name = "console/sessions/sign_in.html"

    def form_valid(self, form: Any) -> HttpResponse:
        response: HttpResponse = super().form_valid(form)
        user = self.request.user
        if isinstance(user, User):
            appearance.remember(response, language=user.language, theme=user.theme, density=user.density)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        # whoever comes before the first admin is told what to do
        return {**super().get_context_data(**kwargs), "is_new": setup.is_open()}


class SignOut(views.LogoutView):  # type: ignore[misc]
    template_name = "console/sessions/sign_out.html"


sign_in = SignIn.as_view()
sign_out = login_not_required(SignOut.as_view())
