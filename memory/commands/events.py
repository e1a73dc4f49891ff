"""``memory events``: which facts wait for a handler, and how does a program handle them?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from memory.commands.printing import complain, say
from memory.daemon_client import request
from memory.errors import AnswerTooLarge, DaemonNotRunning
from memory.rendering import event_lines

if TYPE_CHECKING:
    from memory.commands import Options
    from memory.payloads import EventPayload

_TIMEOUT_S = 30.0


def run(options: Options) -> int:
    """Prints events, one JSON object a line if asked for, or acknowledges one.

    Without ``--follow`` it only looks; with it, each event belongs to this process for a while and
    comes again if it is not acknowledged.

    Raises:
        DaemonError: the daemon refused, or there is none to acknowledge to.
    """
    if options.action == "ack":
        return _acknowledge(options)
    if options.follow:
        return _follow(options)
    waiting = _waiting(options)
    for event in waiting:
        _print(options, event)
    if not waiting and not options.as_json:
        say("no event waits")
    return 0


def _acknowledge(options: Options) -> int:
    answer = request(options.data, "acknowledge", _TIMEOUT_S, event_id=options.subject)
    if options.as_json:
        _print_json(answer)
    elif answer["acknowledged"]:
        say(f"acknowledged {options.subject}")
    else:
        complain(f"no event {options.subject} waits; `memory events` lists those that do")
    return 0 if answer["acknowledged"] else 1


def _waiting(options: Options) -> list[EventPayload]:
    try:
        answer: list[EventPayload] = request(options.data, "events", _TIMEOUT_S)
    except (DaemonNotRunning, AnswerTooLarge):
        from memory.events import waiting_events  # noqa: PLC0415 - not needed beside a daemon
        from memory.payloads import event_payload  # noqa: PLC0415 - as above

        return [event_payload(event) for event in waiting_events(options.data)]
    return answer


def _follow(options: Options) -> int:
    import asyncio  # noqa: PLC0415 - 0.05 s that only this needs

    from memory.events import VISIBILITY_S, DaemonEvents, subscribe  # noqa: PLC0415 - as above
    from memory.payloads import event_payload  # noqa: PLC0415 - as above

    async def follow() -> None:
        source = DaemonEvents(options.data)
        visibility_s = options.visibility_s or VISIBILITY_S
        async for event in subscribe(source, visibility_s=visibility_s):
            _print(options, event_payload(event))

    asyncio.run(follow())
    return 0


def _print(options: Options, event: EventPayload) -> None:
    if options.as_json:
        _print_json(event)
    else:
        sys.stdout.write("\n".join(event_lines(event)) + "\n")
        sys.stdout.flush()


def _print_json(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
