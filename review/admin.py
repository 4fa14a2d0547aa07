"""Tables of this app in the back office, each in its feature's ``admin.py``."""

from review.decisions import admin as decisions
from review.queues import admin as queues

__all__ = ["decisions", "queues"]
