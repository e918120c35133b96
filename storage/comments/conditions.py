"""Condition of the notice about mentions in comments."""

from collections.abc import Iterator

from storage.comments import mentions
from storage.core.notices import Found, Look


def find_mentions(look: Look) -> Iterator[Found]:
    for mention in mentions.not_seen(look.now):
        thread = mention.comment.thread
        facts = {"author": mention.comment.author_name, "about": mentions.describe(thread)}
        yield Found(
            thread.account_id, str(thread.pk), facts, news=str(mention.comment_id), user_id=mention.user_id
        )
