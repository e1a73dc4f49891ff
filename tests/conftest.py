"""What holds for all tests: none is judged by its time, which depends on what runs beside it."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")
