"""Admin classes of this app, defined in the ``admin.py`` of each feature."""

from review.decisions import admin as decisions
from review.queues import admin as queues

__all__ = ["decisions", "queues"]
