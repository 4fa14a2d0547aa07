"""The back office of the human half."""

from review.admin import queues

__all__ = ["queues"]
