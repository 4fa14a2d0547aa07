"""All tables of the human half, for Django alone; code imports the module that defines a table."""

from review.models.draws import Draw, FrameMember
from review.models.queues import Assignment, Draft, ItemEvent, QueueMember, QueueMetric, ReviewItem, ReviewQueue
from review.models.ratings import Exposure, Override, Rating

__all__ = [
    "Assignment",
    "Draft",
    "Draw",
    "Exposure",
    "FrameMember",
    "ItemEvent",
    "Override",
    "QueueMember",
    "QueueMetric",
    "Rating",
    "ReviewItem",
    "ReviewQueue",
]
