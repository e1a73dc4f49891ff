"""What is a file called: in the index, on disk, and on the screen?

The *key* of a file is its workspace-relative path, ``/``-separated and NFC: what users type, what
the index stores. The *raw path* is what the file system spells; it is only good for opening.
"""

from __future__ import annotations

import os
import re
import unicodedata

_SUFFIXES = (".md", ".markdown")
_LONGEST_NAME = 1024
"""Characters; no file system has longer names, and composing one takes quadratic time."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def key(raw_path: str) -> str:
    """Returns the name under which the index knows a file (SPEC W2).

    A component that is too long for a name stays as it is, so that the time is linear in what a
    caller sends for a path.
    """
    path = raw_path.replace(os.sep, "/")
    if len(path) <= _LONGEST_NAME:
        return unicodedata.normalize("NFC", path)
    return "/".join(
        unicodedata.normalize("NFC", name) if len(name) <= _LONGEST_NAME else name
        for name in path.split("/")
    )


def is_indexable_name(raw_path: str) -> bool:
    """Tells whether a relative path names a markdown file that may be indexed (SPEC W1).

    False for other suffixes, for any component that is empty or begins with a dot (so ``..``,
    absolute paths and hidden folders never pass), and for names with a NUL.
    """
    if "\0" in raw_path or not raw_path.lower().endswith(_SUFFIXES):
        return False
    return all(part and not part.startswith(".") for part in key(raw_path).split("/"))


def is_unicode(raw_path: str) -> bool:
    """Tells whether the bytes of a name are UTF-8; only such names can be keys."""
    return _SURROGATE.search(raw_path) is None


def printable(raw_path: str) -> str:
    """Returns a path that can be encoded: undecodable bytes become U+FFFD."""
    return _SURROGATE.sub("\ufffd", raw_path)
