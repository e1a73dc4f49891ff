"""How does a check of the index look to people?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory.sanitizing import sanitize_cell, sanitize_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memory.index_check import CheckPayload

_DETAIL_CHARACTERS = 400


def check_markdown(answer: CheckPayload) -> str:
    """Returns a line for each difference, below one that sums up."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: CheckPayload) -> Iterator[str]:
    number = len(answer["differences"])
    verdict = "no difference" if not number else f"{number:,} difference{'s' * (number > 1)}"
    yield (
        f"{verdict} in {answer['files']:,} files, {answer['chunks']:,} chunks"
        f" \u2014 source: {answer['source']}"
    )
    if answer["recomputed"] is not None:
        yield f"- {answer['recomputed']:,} texts were embedded again"
    for each in answer["differences"]:
        where = f" `{sanitize_path(each['path'], in_table=False)}`" if each["path"] else ""
        yield f"- {each['kind']}:{where} {sanitize_cell(each['detail'], _DETAIL_CHARACTERS)}"
    for path in answer["unsettled"]:
        yield f"- changed meanwhile: `{sanitize_path(path, in_table=False)}`"
