"""Users: sign-in, sessions, security, invitations, API tokens and user administration."""
