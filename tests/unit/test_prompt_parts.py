"""Is a long prompt cut where its sentences end, into parts that are few enough to be asked?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.messages import Query
from memory.prompt_parts import (
    MAX_PART_WORDS,
    MAX_PARTS,
    MAX_PROMPT_CHARS,
    in_parts,
    num_words,
    prompt_parts,
)

RULE = "Before you touch the harbour map, read the notes of the pilot twice and sign them. "
"""A sentence of 16 words, so that it stands alone."""
QUESTION = "Who painted the old lighthouse?"


def words(count: int) -> str:
    return " ".join(f"word{number}" for number in range(count))


@pytest.mark.parametrize("text", ["", "  \n", QUESTION, words(MAX_PART_WORDS), "灯塔" * 40])
def test_a_short_text_has_no_parts(text):
    assert prompt_parts(text) == ()


def test_two_characters_of_a_script_without_spaces_count_as_a_word():
    assert num_words("old 灯塔是谁 lighthouse") == 4


@pytest.mark.parametrize("place", range(4))
def test_a_question_is_a_part_of_its_own_wherever_it_stands(place):
    sentences = [RULE.replace("twice", f"{number} times") for number in range(3)]
    prompt = "".join([*sentences[:place], QUESTION + " ", *sentences[place:]])

    expected = [sentence.strip() for sentence in sentences]
    expected.insert(place, QUESTION)
    assert list(prompt_parts(prompt)) == expected


def test_a_sentence_that_says_little_joins_the_next_one():
    prompt = f"{RULE}{RULE.replace('pilot', 'cook')}Work in steps. {RULE.replace('pilot', 'boy')}"

    assert prompt_parts(prompt)[-1].startswith("Work in steps. Before you touch")


def test_paragraphs_and_items_of_a_list_are_borders_but_wrapped_lines_are_none():
    wrapped = RULE.strip().replace(" read", "\nread")
    item = f"oil for the lamp, {words(12)}"
    prompt = f"{wrapped}\n\nlighthouse keeper {words(12)}\n- {item}\n- rope, {words(12)}"

    assert prompt_parts(prompt) == (
        wrapped,
        f"lighthouse keeper {words(12)}",
        f"- {item}",
        f"- rope, {words(12)}",
    )


def test_an_initial_or_an_abbreviation_ends_no_sentence():
    question = "Did J. R. Keeper see a light, e.g. that of U.N. ships, in May?"

    assert question in prompt_parts(f"{RULE * 2}{question} " + RULE.replace("pilot", "cook"))


def test_sentences_end_in_scripts_without_spaces_too():
    rule = "值班的人每天晚上先点灯然后把风向和来往的船只写进本子里面去。"
    other = "如果夜里起了大雾就要每隔五分钟敲一次钟直到船长回答为止。"

    assert prompt_parts(f"{rule}谁画了灯塔？{other}{rule}") == (rule, "谁画了灯塔？", other)  # noqa: RUF001 - meant as it is


def test_an_endless_sentence_is_cut_behind_a_clause():
    clause = words(30)
    parts = prompt_parts(f"{clause}, {clause}; {clause} {clause}")

    assert parts[:2] == (f"{clause},", f"{clause};")
    assert all(num_words(part) <= MAX_PART_WORDS for part in parts)


def test_of_too_many_parts_neighbours_join_and_nothing_is_lost():
    sentences = [f"Item {number}: {words(14)}." for number in range(2 * MAX_PARTS)]
    parts = prompt_parts(" ".join(sentences))

    assert len(parts) <= MAX_PARTS
    assert " ".join(parts) == " ".join(sentences)


def test_of_a_very_long_prompt_questions_and_both_ends_are_kept():
    rules = [f"Item {number}: {words(36)}." for number in range(2 * MAX_PARTS)]
    middle = len(rules) // 2
    parts = prompt_parts(" ".join([*rules[:middle], QUESTION, *rules[middle:]]))

    assert len(parts) == MAX_PARTS
    assert {rules[0], QUESTION, rules[-1]} <= set(parts)
    assert rules[middle - 2] not in parts


def test_an_enormous_prompt_is_cut_in_the_middle():
    parts = prompt_parts(f"{QUESTION} {'x' * MAX_PROMPT_CHARS} {RULE * 99}The last words are these")

    assert parts[0] == QUESTION
    assert parts[-1].endswith("these")
    assert sum(map(len, parts)) <= MAX_PROMPT_CHARS + len(parts)


@given(st.text(alphabet=st.sampled_from("aß灯ก 。.?!\n-,;\u0301\ud800"), max_size=600))
def test_any_text_has_few_parts_that_each_hold_a_word(text):
    parts = prompt_parts(text)

    assert len(parts) <= MAX_PARTS
    assert len(set(parts)) == len(parts) != 1
    assert all(num_words(part) for part in parts)


def test_a_query_takes_its_parts_unless_it_is_scored_as_orama_does():
    query = Query(RULE * 3 + QUESTION, 3)

    assert in_parts(query, "absolute").texts == (RULE.strip(), QUESTION)
    assert in_parts(query, "orama").texts == (query.text,)
    assert in_parts(Query(QUESTION, 3), "absolute").texts == (QUESTION,)
