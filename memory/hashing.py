"""Which texts are the same text?"""

from __future__ import annotations

import hashlib


def content_hash(headlines: str, context: str, content: str) -> str:
    """Returns the identity of a chunk's text: SHA-256, 64 hexadecimal digits (SPEC C9).

    Each field is preceded by its length in bytes, so that moving text from one field to the next
    gives another hash.
    """
    digest = hashlib.sha256()
    for text in (headlines, context, content):
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
