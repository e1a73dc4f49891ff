"""What reaches a terminal."""

from __future__ import annotations

import unicodedata

from memory.commands.printing import _print_styled


def test_a_character_reference_hides_nothing_on_a_terminal(capsys):
    """FAULTS 87: the renderer decodes what the file spelled out."""
    _print_styled(["a &#x202e;b &ZeroWidthSpace;c [d &#x2066;](http://x)\n\n```\n&#x202e;e\n```\n"])

    shown = capsys.readouterr().out
    assert all(letter in shown for letter in "abcde")
    assert "&#x202e;e" in shown
    assert not {unicodedata.category(character) for character in shown} & {"Cf"}
