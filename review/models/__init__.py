"""All tables of the human half, a file a domain, and the guards; code imports tables from here."""

from review.models.draws import Draw, FrameMember
from review.models.pairs import (
    Pair,
    PairAttempt,
    PairJudging,
    PairMember,
    PairPreflight,
    PairReply,
    PairSet,
    PracticeProgress,
    Preference,
)
from review.models.queues import (
    Assignment,
    Draft,
    EventRuling,
    ItemEvent,
    QueueMember,
    QueueMetric,
    Reminder,
    Reservation,
    ReviewItem,
    ReviewQueue,
)
from review.models.ratings import Exposure, KeptFigures, Override, Rating, RatingPart, SuggestedAnswer

__all__ = [
    "Assignment",
    "Draft",
    "Draw",
    "EventRuling",
    "Exposure",
    "FrameMember",
    "ItemEvent",
    "KeptFigures",
    "Override",
    "Pair",
    "PairAttempt",
    "PairJudging",
    "PairMember",
    "PairPreflight",
    "PairReply",
    "PairSet",
    "PracticeProgress",
    "Preference",
    "QueueMember",
    "QueueMetric",
    "Rating",
    "RatingPart",
    "Reminder",
    "Reservation",
    "ReviewItem",
    "ReviewQueue",
    "SuggestedAnswer",
]
