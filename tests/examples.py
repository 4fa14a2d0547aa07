"""Numbers of hypothesis examples: all of them in ``make test-all``, a fifth in ``make test``."""

from __future__ import annotations

import hypothesis


def examples(thorough: int) -> int:
    """Return ``thorough`` under the profile of that name, else a fifth of it and at least ten."""
    if hypothesis.settings.get_current_profile_name() == "thorough":
        return thorough
    return min(thorough, max(10, thorough // 5))
