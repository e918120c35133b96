"""Access: identities, grants, roles, signatures and stored access policies."""
