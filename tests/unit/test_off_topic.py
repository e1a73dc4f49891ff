"""What the bundled prompts look like."""

import unicodedata

from memory.evaluation.off_topic import off_topic_prompts


def test_each_prompt_is_one_different_line():
    prompts = off_topic_prompts()

    assert len(set(prompts)) == len(prompts) == 64
    assert all(prompt and prompt == prompt.strip() for prompt in prompts)


def test_several_scripts_are_among_them():
    letters = "".join(off_topic_prompts())
    scripts = {unicodedata.name(letter).partition(" ")[0] for letter in letters if letter.isalpha()}

    assert {"LATIN", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA"} <= scripts
