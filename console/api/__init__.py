"""Management API of the console's own data: users, invitations and saved queries."""
