"""The management API of what the console keeps: users, invitations and saved queries."""
