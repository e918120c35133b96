"""Notices: bell, list, mutes, rules, webhooks and e-mail addresses."""
