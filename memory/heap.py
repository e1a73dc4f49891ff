"""How does memory that was freed go back to the system?"""

from __future__ import annotations

import ctypes


def trim() -> None:
    """Gives back what glibc keeps for later; other C libraries do so by themselves.

    Takes about 20 ms after much was freed; other threads go on meanwhile.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
