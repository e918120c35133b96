"""URLs of the profile, setup, invitations and users."""

from django.urls import path

from console.people.views import api_tokens, invitations, profile, providers, security, sessions, setup, users

app_name = "people"
urlpatterns = [
    path("login/done/", sessions.signed_in, name="signed_in"),
    path("me/", profile.edit, name="profile"),
    path("me/time-zone/", profile.choose_zone, name="time_zone"),
    path("me/password/", profile.change_password, name="password"),
    path("me/sessions/", profile.sessions, name="sessions"),
    path("me/sessions/end/", profile.end_other_sessions, name="sessions_end"),
    path("me/sessions/<int:number>/end/", profile.end_session, name="session_end"),
    path("me/tokens/", api_tokens.index, name="api_tokens"),
    path("me/tokens/new/", api_tokens.new, name="api_token_new"),
    path("me/tokens/<int:token>/revoke/", api_tokens.revoke, name="api_token_revoke"),
    path("u/<int:user>/tokens/<int:token>/revoke/", api_tokens.revoke_for_user, name="user_token_revoke"),
    path("me/security/", security.index, name="security"),
    path("me/security/connect/<provider>/", providers.connect, name="connect"),
    path("me/security/disconnect/<int:number>/", providers.disconnect, name="disconnect"),
    path("setup/", setup.first_admin, name="setup"),
    path("join/", invitations.join, name="join"),
    path("u/", users.index, name="users"),
    path("u/invite/", users.invite, name="users_invite"),
    path("u/<int:user>/", users.show, name="user"),
    path("u/<int:user>/change/", users.change, name="user_change"),
]
