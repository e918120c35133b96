"""The tokens of the change feed."""

import base64

import pytest

from storage.domain.history.feed import FeedPosition, FeedToken, InvalidToken, read_token, write_token

TOKENS = [FeedToken("7", f"{number}", FeedPosition(1, "5:9:6", "7:7:", 2, number)) for number in range(200)]
SECRET = b"a secret"


def test_a_token_reads_back_and_does_not_look_like_an_option():
    for token in TOKENS:
        text = write_token(token, SECRET)
        assert read_token(text, SECRET) == token
        assert text[0] not in "-="


def test_tokens_of_before_are_read():
    """Their MAC came first."""
    for token in TOKENS:
        text = write_token(token, SECRET)
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        former = base64.urlsafe_b64encode(raw[-16:] + raw[:-16]).decode().rstrip("=")
        assert read_token(former, SECRET) == token


@pytest.mark.parametrize("text", ["", "a", "!", "MTIzNDU2Nzg5MDEyMzQ1Ng", write_token(TOKENS[0], b"another")])
def test_other_texts_are_refused(text):
    with pytest.raises(InvalidToken):
        read_token(text, SECRET)
