"""URLs that allauth looks up by name, so they have no namespace."""

from django.urls import path

from console.people.views import providers, reauthentication, security, sessions

urlpatterns = [
    path("login/", sessions.sign_in, name="account_login"),
    path("login/mfa/", sessions.second_factor, name="mfa_authenticate"),
    path("login/passkey/", sessions.sign_in_by_passkey, name="mfa_login_webauthn"),
    path("login/with/<provider_id>/", providers.sign_in, name="openid_connect_login"),
    path("login/with/<provider_id>/callback/", providers.callback, name="openid_connect_callback"),
    path("login/off/", sessions.inactive, name="account_inactive"),
    path("logout/", sessions.sign_out, name="account_logout"),
    path("me/security/app/", security.add_app, name="mfa_activate_totp"),
    path("me/security/app/off/", security.remove_app, name="mfa_deactivate_totp"),
    path("me/security/codes/", security.show_codes, name="mfa_view_recovery_codes"),
    path("me/security/codes/new/", security.new_codes, name="mfa_generate_recovery_codes"),
    path("me/security/passkeys/", security.add_passkey, name="mfa_add_webauthn"),
    path("me/security/passkeys/<int:pk>/", security.rename_passkey, name="mfa_edit_webauthn"),
    path("me/security/passkeys/<int:pk>/remove/", security.remove_passkey, name="mfa_remove_webauthn"),
    path("me/again/", reauthentication.by_password, name="account_reauthenticate"),
    path("me/again/code/", reauthentication.by_code, name="mfa_reauthenticate"),
    path("me/again/passkey/", reauthentication.by_passkey, name="mfa_reauthenticate_webauthn"),
]
