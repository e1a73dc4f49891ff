import hashlib

from hypothesis import given
from hypothesis import strategies as st

from memory.hashing import content_hash


def test_the_hash_is_sha256_over_length_prefixed_fields():
    expected = hashlib.sha256(
        b"\0\0\0\0\0\0\0\x03# A\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x03\xc3\xa9b"
    ).hexdigest()

    assert content_hash("# A", "", "éb") == expected


@given(*[st.tuples(st.text("ab", max_size=3), *[st.text("ab", max_size=3)] * 2)] * 2)
def test_moving_text_between_fields_changes_the_hash(one, other):
    # FAULTS 48
    assert (content_hash(*one) == content_hash(*other)) is (one == other)


def test_lone_surrogates_are_hashed_like_any_text():
    assert content_hash("\ud800", "", "") != content_hash("\ud801", "", "")
