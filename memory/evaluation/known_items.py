"""Which questions do the indexed files answer, as they themselves say?

Known items: whoever links to a file, heads a section or describes a file says in a few words of
his own what is to be found there.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memory.descriptions import plain_text
from memory.evaluation.linking import Targets, links, without_suffix
from memory.evaluation.question import Question
from memory.segmentation import WORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memory.evaluation.linking import Link
    from memory.messages import ParsedFile

_MIN_HEADING_WORDS = 2
_MIN_DESCRIPTION_WORDS = 3
_SPACELESS_WORD = 2
"""Characters of a word in a script without spaces, as the analysis cuts it."""
_HEADING_LEVELS = (2, 3)
_HEADING_BORDER = re.compile(r" > (?=#{1,3} )")
_BETWEEN_WORDS = re.compile(r"[\W_]+")
_ADDRESS = re.compile(r"\w+:\S+|www\.\S+|\S+\.[a-z][a-z0-9]{0,7}", re.IGNORECASE)
_SEED = b"1"


@dataclass(slots=True)
class _Candidate:
    """A text that may become a question."""

    text: str
    targets: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)


class _Candidates:
    """The texts of one kind, equal ones together whatever their case."""

    def __init__(self) -> None:
        self._by_text: dict[str, _Candidate] = {}

    def add(self, text: str, target: str, source: str | None = None) -> None:
        """Notes that a text means a file, and which file says so."""
        candidate = self._by_text.setdefault(text.casefold(), _Candidate(text))
        candidate.text = min(candidate.text, text)
        candidate.targets.add(target)
        candidate.sources |= {source} if source is not None else set()

    def questions(self) -> Iterator[Question]:
        """Yields a question for each text that means one file and is more than its name."""
        for candidate in self._by_text.values():
            target, *others = candidate.targets
            if not others and not _is_name(candidate.text, target):
                exclude = frozenset(candidate.sources - candidate.targets)
                yield Question(candidate.text, {(target, ""): 1.0}, exclude)


def known_items(files: Iterable[ParsedFile], *, limit: int) -> dict[str, tuple[Question, ...]]:
    """Returns questions by kind, sorted by text; the same for the same files.

    - ``link``: the text of a link to another file asks for that file; the files that link with
      these words are left out of the answer.
    - ``heading``: an h2 or h3 that occurs once, of two words or more, asks for its file.
    - ``front matter``: a description, else a title, of three words or more asks for its file.

    Texts that mean several files are no questions, nor are names of files and addresses.

    Args:
        files: Every indexed file, with its sections; gone through once.
        limit: Most questions of a kind. Which are taken depends on their text alone, so that a
            changed file changes few of them.
    """
    found: list[tuple[str, tuple[Link, ...]]] = []
    headings: list[tuple[str, str]] = []
    titles: Counter[str] = Counter()
    descriptions = _Candidates()
    for file in files:
        found.append((file.path, tuple(links(file.chunks))))
        for title, level in _headings(file):
            titles[title.casefold()] += 1
            if level in _HEADING_LEVELS and _num_words(title) >= _MIN_HEADING_WORDS:
                headings.append((title, file.path))
        if description := _description(file):
            descriptions.add(description, file.path)
    kinds = {
        "link": _linked(found),
        "heading": _unique(headings, titles),
        "front matter": descriptions,
    }
    return {kind: _sample(texts.questions(), limit) for kind, texts in kinds.items()}


def _linked(found: Sequence[tuple[str, tuple[Link, ...]]]) -> _Candidates:
    targets, candidates = Targets(path for path, _links in found), _Candidates()
    for source, its_links in found:
        for link in its_links:
            target = targets.find(link, source)
            if target is not None:
                candidates.add(plain_text(link.text), target, source)
    return candidates


def _unique(headings: Iterable[tuple[str, str]], titles: Mapping[str, int]) -> _Candidates:
    candidates = _Candidates()
    for title, path in headings:
        if titles[title.casefold()] == 1:
            candidates.add(title, path)
    return candidates


def _headings(file: ParsedFile) -> Iterator[tuple[str, int]]:
    """Yields what begins each section as text and its level."""
    for chunk in file.chunks:
        if chunk.part == 1:
            heading = _HEADING_BORDER.split(chunk.headlines)[-1]
            title = heading.lstrip("#")
            yield plain_text(title), len(heading) - len(title)


def _description(file: ParsedFile) -> str:
    texts = (file.description, plain_text(file.title))
    return next((text for text in texts if _num_words(text) >= _MIN_DESCRIPTION_WORDS), "")


def _num_words(text: str) -> int:
    return sum(
        max(1, len(match[0]) // _SPACELESS_WORD) if match["spaceless"] else 1
        for match in WORD.finditer(text)
    )


def _is_name(text: str, path: str) -> bool:
    """Tells whether a text is an address, the name of the file, or no words at all."""
    words = _words(text)
    names = (path, without_suffix(path))
    known = {_words(name) for each in names for name in (each, posixpath.basename(each))}
    return not words or words in known or bool(_ADDRESS.fullmatch(text))


def _words(text: str) -> str:
    return " ".join(_BETWEEN_WORDS.split(text.casefold())).strip()


def _sample(questions: Iterable[Question], limit: int) -> tuple[Question, ...]:
    kept = sorted(questions, key=lambda question: _draw(question.text))[:limit]
    return tuple(sorted(kept, key=lambda question: question.text))


def _draw(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SEED).digest()
