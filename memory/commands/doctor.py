"""``memory doctor``: what is wrong here, and what helps?"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from memory.commands.printing import print_answer

if TYPE_CHECKING:
    from memory.commands import Options


def run(options: Options) -> int:
    """Prints a line for each thing that was looked at; 1 if one of them is wrong."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as ``memory.commands.asking``
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # as ``Options.settings``
    from memory.doctor.examination import Patient, examine  # noqa: PLC0415 - loads pydantic
    from memory.doctor.finding import doctor_lines, doctor_payload  # noqa: PLC0415 - as above

    answer = doctor_payload(
        examine(
            Patient(
                config=options.config,
                is_config_named=options.config_given,
                data=options.data,
                workspace=options.workspace,
                environment=os.environ,
                now_s=options.now_s,
                is_offline=options.offline,
                proc=Path("/proc"),
                shared_memory=Path("/dev/shm"),  # noqa: S108 - only asked how much room it has
            )
        )
    )
    if options.as_json:
        print_answer(options, answer, tuple)
    else:
        sys.stdout.writelines(f"{line}\n" for line in doctor_lines(answer))
    return 0 if answer["ok"] else 1
