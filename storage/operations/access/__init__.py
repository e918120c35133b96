"""Who may do what: policies, SAS, keys, members, API tokens and bearer tokens."""
