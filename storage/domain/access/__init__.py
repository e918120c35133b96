"""Who may do what: identities, grants, roles, signatures and stored access policies."""
