"""Which file is next?"""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.path_queue import MAX_DELAY_S, Fault, Lane, PathQueue, Work


def new_queue() -> PathQueue:
    return PathQueue(random.Random(1))


def fail(queue: PathQueue, path: str, now: float, retry_after_s: float = 0.0) -> None:
    queue.failed(path, stage="embed", reason="no answer", now=now, retry_after_s=retry_after_s)


def test_many_events_for_one_path_are_one_entry_with_the_last_spelling():
    queue = new_queue()
    for spelling in ("a.md", "a.md", "A.md"):
        queue.put("a.md", spelling)

    assert queue.pending == 1
    assert queue.take(0) == Work("a.md", "A.md", 0)
    assert queue.take(0) is None


def test_paths_come_in_the_order_of_their_first_event():
    queue = new_queue()
    for path in ("b", "a", "c", "b"):
        queue.put(path, path)

    assert [queue.take(0).path for _ in range(3)] == ["b", "a", "c"]


def test_live_events_overtake_the_scan():
    queue = new_queue()
    queue.put("old", "old", lane=Lane.SCAN)
    queue.put("both", "both", lane=Lane.SCAN)
    queue.put("live", "live", lane=Lane.LIVE)
    queue.put("both", "both", lane=Lane.LIVE)

    assert [queue.take(0).path for _ in range(3)] == ["live", "both", "old"]
    assert queue.take(0) is None


@pytest.mark.parametrize("order", list(permutations(Lane)))
def test_a_path_has_the_best_lane_that_anybody_asked_for(order):
    queue = new_queue()
    for lane in Lane:
        queue.put(f"other {lane}", "other", lane=lane)
    for lane in order:
        queue.put("asked", "asked", lane=lane)

    served = [queue.take(0).path for _ in range(4)]

    assert served == ["other 0", "asked", "other 1", "other 2"]


def test_a_scan_moves_up_what_failed_without_ending_its_back_off():
    queue = new_queue()
    queue.put("a", "a", lane=Lane.ANEW)
    queue.take(0)
    fail(queue, "a", 0)
    queue.put("a", "a", lane=Lane.SCAN)
    queue.put("bulk", "bulk", lane=Lane.ANEW)

    assert queue.take(0).path == "bulk"
    queue.put("more", "more", lane=Lane.ANEW)
    assert queue.take(MAX_DELAY_S).path == "a"


def test_a_scan_does_not_send_a_live_path_back():
    queue = new_queue()
    queue.put("scanned", "scanned", lane=Lane.SCAN)
    queue.put("live", "live")
    queue.put("live", "live", lane=Lane.SCAN)

    assert queue.take(0).path == "live"


def test_a_path_that_is_worked_on_is_handed_out_again_only_when_done():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(0)
    queue.put("a", "A")

    assert queue.take(0) is None
    assert queue.pending == 1
    assert not queue.drained

    queue.done("a")
    assert queue.take(0) == Work("a", "A", 0)


def test_a_live_event_during_the_work_is_not_sent_back_by_a_scan():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(0)
    queue.put("a", "a", lane=Lane.LIVE)
    queue.put("a", "a", lane=Lane.SCAN)
    queue.put("other", "other", lane=Lane.SCAN)
    queue.done("a")

    assert queue.take(0).path == "a"


def test_a_queue_is_drained_when_nothing_waits_and_nothing_is_worked_on():
    queue = new_queue()
    assert queue.drained

    queue.put("a", "a")
    assert not queue.drained
    queue.take(0)
    assert not queue.drained
    queue.done("a")
    assert queue.drained


def test_a_failed_path_waits_but_does_not_keep_the_queue_busy():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(10)
    fail(queue, "a", now=10, retry_after_s=5)

    assert queue.drained
    assert queue.take(14.9) is None
    assert queue.retry_in(11) == 4
    assert queue.take(15) == Work("a", "a", 1)
    assert queue.retry_in(15) is None


def test_a_failure_is_listed_with_wall_clock_time():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(10)
    fail(queue, "a", now=10, retry_after_s=600)

    (failure,) = queue.failures(now=70, unix_now=5000)
    assert (failure.path, failure.stage, failure.reason) == ("a", "embed", "no answer")
    assert (failure.attempts, failure.retry_at) == (1, 5540)


def test_a_live_event_ends_the_back_off_and_a_scan_does_not():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(0)
    fail(queue, "a", now=0, retry_after_s=600)

    queue.put("a", "a", lane=Lane.SCAN)
    assert queue.take(1) is None
    queue.put("a", "a", lane=Lane.LIVE)
    assert queue.take(1) == Work("a", "a", 1)
    assert queue.failures(now=1, unix_now=1) == ()


def test_an_event_during_a_failing_attempt_is_tried_at_once():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(0)
    queue.put("a", "A")
    fail(queue, "a", now=0, retry_after_s=600)

    assert queue.take(0) == Work("a", "A", 1)


def test_success_forgets_the_attempts():
    queue = new_queue()
    queue.put("a", "a")
    queue.take(0)
    fail(queue, "a", now=0)
    assert queue.take(1000).attempts == 1

    queue.done("a")
    queue.put("a", "a")
    assert queue.take(1000).attempts == 0


def test_back_off_grows_up_to_its_cap_and_never_overflows():
    """The delay of attempt n is uniform in [0, min(60, 2^(n-1))] seconds."""
    queue, now, delays = new_queue(), 0.0, []
    queue.put("a", "a")
    for _attempt in range(2000):
        assert queue.take(now) is not None
        fail(queue, "a", now=now)
        delays.append(queue.retry_in(now))
        now += delays[-1]

    assert all(delay <= 2**number for number, delay in enumerate(delays[:6]))
    assert max(delays) <= MAX_DELAY_S
    assert max(delays[10:]) > 0.9 * MAX_DELAY_S
    assert 25 < sum(delays[10:]) / len(delays[10:]) < 35


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*Lane, "take", "done", "fail"]),
            st.sampled_from("abc"),
        ),
        max_size=60,
    )
)
def test_no_event_is_lost_and_no_path_has_two_workers(steps):
    """A model of three paths: an event is served once a worker starts after it."""
    queue, working, unserved, now = new_queue(), set(), set(), 0.0
    for step, path in steps:
        now += 0.5
        if isinstance(step, Lane):
            queue.put(path, path, lane=step)
            unserved.add(path)
        elif step == "take":
            work = queue.take(now)
            if work is not None:
                assert work.path not in working
                working.add(work.path)
                unserved.discard(work.path)
        elif path in working:
            working.discard(path)
            if step == "done":
                queue.done(path)
            else:
                fail(queue, path, now)
                unserved.add(path)
    for path in working:
        queue.done(path)

    later = now + MAX_DELAY_S
    rest = Counter(work.path for work in iter(lambda: queue.take(later), None))
    assert rest == Counter(unserved)


def held_up(queue: PathQueue, path: str, fault: Fault, retry_after_s: float = 50.0) -> None:
    queue.put(path, path)
    assert queue.take(0).path == path
    queue.failed(
        path, stage="embed", reason="away", now=0, retry_after_s=retry_after_s, fault=fault
    )


def test_what_an_outage_holds_up_is_pending_and_what_fails_by_itself_is_not():
    """SPEC D5."""
    queue = new_queue()
    for path, fault in (("own", Fault.OWN), ("asked", Fault.OUTAGE), ("unasked", Fault.UNTRIED)):
        held_up(queue, path, fault)

    failures = queue.failures(now=0, unix_now=0)
    assert (queue.pending, queue.num_held_up, queue.drained) == (2, 2, False)
    assert {failure.path: failure.waits for failure in failures} == {
        "asked": True,
        "own": False,
        "unasked": True,
    }


def test_at_the_end_of_an_outage_what_was_not_tried_is_due_at_once_and_stays_pending():
    queue = new_queue()
    held_up(queue, "a", Fault.UNTRIED)
    held_up(queue, "b", Fault.UNTRIED)

    assert queue.outage_is_over()
    assert queue.retry_in(1) == 0
    assert queue.pending == 2
    assert [queue.take(1).path for _ in range(2)] == ["a", "b"]
    assert (queue.pending, queue.num_held_up) == (2, 0)
    assert not queue.outage_is_over()


def test_what_failed_itself_in_an_outage_keeps_its_pause_at_the_end_of_it():
    """It may be what the provider fails at, and would bring the others to a halt again."""
    queue = new_queue()
    held_up(queue, "a", Fault.OUTAGE, retry_after_s=50)

    assert not queue.outage_is_over()
    assert queue.take(49) is None
    assert queue.pending == 1
    assert queue.take(50).path == "a"


def test_an_edit_of_a_path_that_is_held_up_is_counted_once():
    queue = new_queue()
    held_up(queue, "a", Fault.UNTRIED)
    queue.put("a", "a", lane=Lane.SCAN)
    assert queue.pending == 1

    queue.put("a", "a")
    assert (queue.pending, queue.num_held_up) == (1, 0)
    assert queue.take(0) == Work("a", "a", 1)
