"""Do exact names and paraphrases pass the floor in a memory of five files, and nothing else?"""

from __future__ import annotations

import pytest

from memory.messages import Query
from tests.recall.memory_index import calibrated_index

pytestmark = pytest.mark.slow

FILES = {
    "refunds.md": "# Refund policy\n\nCustomers get their money back within thirty days of the "
    "purchase if the goods are unused.\n",
    "alice.md": "# Alice Brannigan\n\nAlice leads the billing team. Her e-mail is "
    "alice.brannigan@example.org. She prefers short messages.\n",
    "deploy.md": "# Deploying\n\nRun make release, wait for the canary, then promote build 4711-b "
    "to production. Incident INC-20417 showed why.\n",
    "garden.md": "# Garden\n\nThe tomatoes need water every second day; the compost is turned in "
    "October.\n",
    "standup.md": "# Stand-up notes\n\nWe agreed to move the weekly meeting to Tuesday at ten, in "
    "the small room.\n",
}
FLOOR = 0.55


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace")
    for path, text in FILES.items():
        (folder / path).write_text(text)
    return calibrated_index(folder)


def best(memory, prompt):
    index, embed = memory
    hits = index.search(Query(prompt, 3), embed([prompt])[0]).hits
    return (hits[0].path, hits[0].score) if hits else ("", 0.0)


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ("INC-20417", "deploy.md"),
        ("What is the status of INC-20417 and who is handling it right now?", "deploy.md"),
        ("4711-b", "deploy.md"),
        ("what happened with build 4711-b last week, did it crash", "deploy.md"),
        ("alice.brannigan@example.org", "alice.md"),
        ("send a mail to alice.brannigan@example.org about the contract", "alice.md"),
        ("Brannigan", "alice.md"),
        ("garden.md", "garden.md"),
        ("how do I get reimbursed for something I returned", "refunds.md"),
        ("when do we meet each week", "standup.md"),
    ],
)
def test_an_exact_name_or_a_paraphrase_passes_the_floor(memory, prompt, path):
    found, score = best(memory, prompt)

    assert found == path
    assert score > FLOOR


@pytest.mark.parametrize(
    "prompt",
    [
        "what is the capital of France",
        "write a poem about the sea",
        "fix the null pointer in the parser",
        "how old is the universe",
        "Wie wird das Wetter morgen?",
        "plan a trip to Japan for two weeks",
        "Translate this text into French for me",
        "refactor the login page to use hooks and add tests",
    ],
)
def test_a_prompt_about_something_else_stays_below_it(memory, prompt):
    assert best(memory, prompt)[1] <= FLOOR
