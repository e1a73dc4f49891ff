"""Which parts of a long prompt may each be a question of their own?

A model sees only the beginning of a long text, and whatever holds the answer to one sentence holds
few of the words of all others. So a long prompt is asked sentence by sentence. The text of a short
one stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from memory.segmentation import WORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memory.messages import Query

MAX_PART_WORDS = 40
"""A text of so many words is a question as it is; two characters of a script without spaces count
as a word."""
MAX_PARTS = 24
"""Each takes a vector and a search of its own."""
MAX_PROMPT_CHARS = 16_384
"""Longer prompts are cut in the middle: they begin or end with what they ask."""

_FEWEST_WORDS = (12, 20, 32)
"""Of a part that is no question. A shorter sentence joins the next one, as it says little by itself
and is easily found whole; more of them join where there would be too many parts."""
_PARAGRAPH = re.compile(r"\n\s*\n|\n(?=[ \t]*(?:[-*+#>|]|\d+[.)]\s))")
# No border behind an initial or an abbreviation such as e.g.
_SENTENCE = re.compile(
    r"""(?:(?:(?<!\b\w)\.|[!?…؟।])["'”’)\]]*(?=\s)|[。！？｡]["”’』」）]*)\s*"""  # noqa: RUF001 - meant as they are
)
_QUESTION = re.compile(r"""[?？؟]["'”’)\]』」）]*\s*\Z""")  # noqa: RUF001 - as above
_CLAUSE = re.compile(r"[,;:،，、；：]")  # noqa: RUF001 - as above


def prompt_parts(text: str) -> tuple[str, ...]:
    """Returns the parts of a long text in their order; none of a short one.

    Of very many parts ``MAX_PARTS`` are kept: questions, then those near the end or the beginning.

    Args:
        text: Anything.
    """
    text = _bounded(text)
    if len(text) <= MAX_PART_WORDS or num_words(text) <= MAX_PART_WORDS:
        return ()
    paragraphs = [list(_sentences(each)) for each in _PARAGRAPH.split(text)]
    parts: list[str] = []
    for fewest in _FEWEST_WORDS:
        joined = (_joined(paragraph, fewest) for paragraph in paragraphs)
        parts = list(dict.fromkeys(chain.from_iterable(joined)))
        if len(parts) <= MAX_PARTS:
            break
    return tuple(_most_telling(parts)) if len(parts) > 1 else ()


def in_parts(query: Query, scoring: str) -> Query:
    """Returns a query that is asked part by part if it is long.

    Args:
        query: Without parts.
        scoring: ``memory.scoring``; Orama asks every text as it is.
    """
    return replace(query, parts=prompt_parts(query.text)) if scoring == "absolute" else query


def num_words(text: str) -> int:
    """Returns the number of words; two characters of a script without spaces count as one."""
    words = (match["spaceless"] for match in WORD.finditer(text))
    return sum(1 if run is None else (len(run) + 1) // 2 for run in words)


def _bounded(text: str) -> str:
    if len(text) <= MAX_PROMPT_CHARS:
        return text
    return f"{text[: MAX_PROMPT_CHARS // 2]}\n\n{text[-MAX_PROMPT_CHARS // 2 :]}"


def _sentences(paragraph: str) -> Iterator[str]:
    """Yields the sentences of a paragraph that hold a word; very long ones in pieces."""
    start = 0
    for end in chain((match.end() for match in _SENTENCE.finditer(paragraph)), (len(paragraph),)):
        for piece in _pieces(paragraph[start:end]):
            if WORD.search(piece):
                yield piece
        start = end


def _pieces(sentence: str) -> Iterator[str]:
    """Yields pieces of at most ``MAX_PART_WORDS``, cut behind a clause where there is one."""
    start = cut = count = 0
    end = 0
    for begin, stop in _word_spans(sentence):
        if count == MAX_PART_WORDS:
            cut = cut if cut > (start + end) // 2 else begin
            yield sentence[start:cut]
            count = num_words(sentence[cut:begin])
            start = cut
        if _CLAUSE.search(sentence, end, begin):
            cut = begin
        count += 1
        end = stop
    yield sentence[start:]


def _word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields the places of words; of a run without spaces, those of two characters each."""
    for match in WORD.finditer(text):
        start, end = match.span()
        step = 2 if match["spaceless"] else end - start
        yield from ((each, min(each + step, end)) for each in range(start, end, step))


def _joined(sentences: Iterable[str], fewest: int) -> list[str]:
    """Returns sentences, short ones that are no questions together with their neighbours."""
    parts: list[str] = []
    num_open = 0
    """Words of the last part while it still takes the next sentence."""
    for sentence in sentences:
        if _QUESTION.search(sentence):
            parts.append(sentence)
            num_open = fewest
        elif num_open < fewest and parts:
            parts[-1] += sentence
            num_open += num_words(sentence)
        else:
            parts.append(sentence)
            num_open = num_words(sentence)
    if num_open < fewest and len(parts) > 1 and not _QUESTION.search(parts[-2]):
        last = parts.pop()
        parts[-1] += last
    return [part.strip() for part in parts]


def _most_telling(parts: Sequence[str]) -> Sequence[str]:
    """Returns at most ``MAX_PARTS`` parts, in their order."""
    last = len(parts) - 1

    def rank(number: int) -> tuple[bool, int]:
        return not _QUESTION.search(parts[number]), min(last - number, number)

    kept = sorted(range(len(parts)), key=rank)[:MAX_PARTS]
    return [parts[number] for number in sorted(kept)]
