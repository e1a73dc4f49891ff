"""Who may work on which event."""

from __future__ import annotations

from memory.leases import Leases
from memory.outbox import SkillEvent

ONE, TWO = (SkillEvent(name, name, (), (), 0.0) for name in ("one", "two"))


def test_two_takers_get_different_events_oldest_first():
    leases = Leases()

    taken = [leases.take((ONE, TWO), now_s=0, visibility_s=10) for _ in range(3)]

    assert taken == [ONE, TWO, None]


def test_an_event_comes_again_once_its_time_is_over_and_not_before():
    leases = Leases()
    leases.take((ONE,), now_s=5, visibility_s=10)

    assert leases.take((ONE,), now_s=14.9, visibility_s=10) is None
    assert leases.take((ONE,), now_s=15, visibility_s=10) == ONE


def test_the_next_free_event_is_known_without_taking_it():
    leases = Leases()
    assert leases.next_free_s((), now_s=0) is None
    assert leases.next_free_s((ONE,), now_s=0) == 0
    leases.take((ONE,), now_s=0, visibility_s=10)
    leases.take((ONE, TWO), now_s=4, visibility_s=10)

    assert leases.next_free_s((ONE, TWO), now_s=4) == 6
    assert leases.next_free_s((TWO,), now_s=4) == 10
    assert leases.next_free_s((ONE, TWO), now_s=99) == 0


def test_what_was_acknowledged_is_forgotten():
    leases = Leases()
    for number in range(100):
        event = SkillEvent(str(number), "", (), (), 0.0)
        assert leases.take((event,), now_s=0, visibility_s=10) == event

    assert len(leases._until) == 1


def test_what_is_released_can_be_taken_at_once():
    leases = Leases()
    leases.take((ONE,), now_s=0, visibility_s=10, owner="a")
    leases.release(ONE.event_id)

    assert leases.next_free_s((ONE,), now_s=1) == 0
    assert leases.take((ONE,), now_s=1, visibility_s=10) == ONE


def test_an_owner_that_starts_anew_loses_only_what_was_its_own():
    leases = Leases()
    leases.take((ONE, TWO), now_s=0, visibility_s=10, owner="a")
    leases.take((ONE, TWO), now_s=0, visibility_s=10, owner="b")
    leases.release_all("a")

    assert leases.take((ONE, TWO), now_s=1, visibility_s=10) == ONE
    assert leases.take((ONE, TWO), now_s=1, visibility_s=10) is None


def test_only_who_has_an_event_gets_more_time_for_it():
    leases = Leases()
    leases.take((ONE,), now_s=0, visibility_s=10)
    leases.renew(ONE.event_id, now_s=4, visibility_s=10)
    assert leases.next_free_s((ONE,), now_s=4) == 10

    leases.release(ONE.event_id)
    leases.renew(ONE.event_id, now_s=5, visibility_s=10)
    assert leases.next_free_s((ONE,), now_s=5) == 0
