"""Notices: the bell, the list, what is muted, and the rules, webhooks and addresses that they go to."""
