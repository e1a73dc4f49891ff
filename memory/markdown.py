"""How does a markdown file become chunks (SPEC C1 to C9)?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from memory import front_matter, graphemes, outline, splitting
from memory.descriptions import first_paragraph, summary_of
from memory.embedding_input import frame, shortened
from memory.hashing import content_hash
from memory.messages import Chunk, ParsedFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memory.embedding_input import TokenLimits
    from memory.outline import Block
    from memory.workspace import SourceFile

_MAX_SECTION_LEVEL = 3
MAX_HEADING_CHARACTERS = 1000
"""A longer heading is cut in the trail, which every chunk repeats, and kept in the content."""
MAX_CONTEXT_CHARACTERS = 4000
"""A longer first paragraph is cut in the context, which every chunk repeats."""


def parse_file(source: SourceFile, *, limits: TokenLimits) -> ParsedFile:
    """Returns a file as the index keeps it.

    Never fails on any content; whatever is not blank ends up in the content of a chunk, in a trail
    of headings, or in the front matter.

    Args:
        source: A file as it was read.
        limits: Room for the embedding input of a chunk; a longer section is split.
    """
    text, num_replaced = decode(source.data)
    matter, first_line = front_matter.split(text)
    lines = text.split("\n")
    body = lines[first_line:]
    blocks = outline.blocks("\n".join(body))
    stem = PurePosixPath(source.path).stem
    chunker = _Chunker(
        lines=body,
        first_line=first_line,
        context=_context(blocks) or matter.description,
        limits=limits,
    )
    return ParsedFile(
        path=source.path,
        raw_path=source.raw_path,
        mtime_ns=source.mtime_ns,
        size=source.size,
        inode=source.inode,
        title=matter.title,
        description=matter.description,
        summary=summary_of(blocks, body),
        tags=matter.tags,
        dates=matter.dates,
        num_replaced_bytes=num_replaced,
        chunks=tuple(
            chunk
            for section in list(_sections(stem, blocks, body, limits))
            or _front_matter_alone(stem, first_line)
            for chunk in chunker.chunks(section)
        ),
    )


def decode(data: bytes) -> tuple[str, int]:
    """Returns the text with one kind of line end, and how many invalid sequences were replaced."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    num_replaced = text.count("\ufffd") - data.count("\ufffd".encode())
    return text.replace("\r\n", "\n").replace("\r", "\n"), num_replaced


def _context(blocks: Sequence[Block]) -> str:
    h1 = next((index for index, block in enumerate(blocks) if block.level == 1), 0)
    paragraph = first_paragraph(blocks[h1:]) or first_paragraph(blocks[:h1])
    return graphemes.cut(paragraph, MAX_CONTEXT_CHARACTERS)


@dataclass(frozen=True, slots=True)
class _Section:
    headlines: str
    start: int
    """Line of the heading, or of the body where there is none; negative in front matter."""
    body: int
    """First line of the body."""
    end: int
    """Line after the last one of the body; blank lines at both ends of the body are left out."""


def _sections(
    stem: str, blocks: Sequence[Block], lines: Sequence[str], limits: TokenLimits
) -> Iterator[_Section]:
    headings = [block for block in blocks if 1 <= block.level <= _MAX_SECTION_LEVEL]
    ends = [*(heading.start for heading in headings), len(lines)]
    start, end = _without_blank_ends(lines, 0, ends[0])
    if start < end:
        yield _Section(f"# {stem}", start, start, end)
    trail = [""] * _MAX_SECTION_LEVEL
    for heading, following in zip(headings, ends[1:], strict=True):
        title = f"{'#' * heading.level} {' '.join(heading.text.split())}".rstrip()
        is_short = len(title) <= MAX_HEADING_CHARACTERS and limits.count(title) <= limits.share
        title = graphemes.cut(title, MAX_HEADING_CHARACTERS)
        trail[heading.level - 1 :] = [title] + [""] * (_MAX_SECTION_LEVEL - heading.level)
        body = heading.end if is_short else heading.start
        body, end = _without_blank_ends(lines, body, following)
        if body == end:
            body = end = heading.end
        yield _Section(" > ".join(filter(None, trail)), heading.start, body, end)


def _front_matter_alone(stem: str, num_lines: int) -> list[_Section]:
    """Returns what keeps a file without a body findable by its name and its front matter."""
    return [_Section(f"# {stem}", -num_lines, 0, 0)] if num_lines else []


def _without_blank_ends(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    return start, end


class _Chunker:
    """Turns the sections of one file into chunks."""

    def __init__(
        self, *, lines: Sequence[str], first_line: int, context: str, limits: TokenLimits
    ) -> None:
        self._lines = lines
        self._first_line = first_line
        self._context = context
        self._short_context = shortened(context, limits)
        self._limits = limits

    def chunks(self, section: _Section) -> Iterator[Chunk]:
        """Yields the parts of a section, in order; one, unless it is too long for the model."""
        content = "\n".join(self._lines[section.body : section.end])
        before = frame(section.headlines, self._short_context, self._limits)
        parts = splitting.split(content, before, self._limits)
        line, position = section.body, 0
        for part, (start, end) in enumerate(parts, 1):
            line += content.count("\n", position, start)
            position = start
            text = content[start:end]
            last_line = line + text.count("\n") if text else section.end - 1
            yield Chunk(
                headlines=section.headlines,
                context=self._context,
                content=text,
                content_hash=content_hash(section.headlines, self._context, text),
                part=part,
                num_parts=len(parts),
                start_line=self._first_line + 1 + (section.start if part == 1 else line),
                end_line=self._first_line + 1 + last_line,
            )
