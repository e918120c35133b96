"""Addresses of signing in and out, and of what people do about themselves; most names are allauth's."""

from django.urls import path

from console.views import profile, reauthentication, sessions

urlpatterns = [
    path("login/", sessions.sign_in, name="account_login"),
    path("logout/", sessions.sign_out, name="account_logout"),
    path("me/", profile.edit, name="profile"),
    path("me/password/", profile.change_password, name="password"),
    path("me/again/", reauthentication.by_password, name="account_reauthenticate"),
    path("me/again/code/", reauthentication.by_code, name="mfa_reauthenticate"),
    path("me/again/passkey/", reauthentication.by_passkey, name="mfa_reauthenticate_webauthn"),
]
