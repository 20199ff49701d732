"""How many bytes a message counts for on a link of limited bandwidth.

Nominal, so that both engines count the same: a head, and the text of the prompt, which only requests carry. Replies
stand for their last token; the tokens before it are not sent one by one.
"""

from __future__ import annotations

from testbed.roles.messages import Message, Request

HEAD_BYTES = 64
TOKEN_BYTES = 4  # English text has about four letters a token


def message_bytes(message: Message) -> int:
    """The nominal size of a message."""
    return HEAD_BYTES + (TOKEN_BYTES * message.prompt_tokens if isinstance(message, Request) else 0)
