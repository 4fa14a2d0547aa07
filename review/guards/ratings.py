"""Ratings: of the item in hand, one decision a lease, before the judge was seen, and blind only where that is true.

Imported ratings have no assignment and are not looked at here.
"""

from evaluation.storage.guards import Guard

_TABLE = "review_rating"
_ASSISTED = (
    "EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "
    "JOIN review_reviewqueue q ON q.id = i.queue_id WHERE a.id = NEW.assignment_id AND q.mode <> 'blind')"
)
_EXPOSED = (
    "EXISTS (SELECT 1 FROM review_exposure e WHERE e.user_id = NEW.reviewer_id AND ((e.scope = 'answer' "
    "AND e.object_id = NEW.answer_id) OR (e.scope = 'run' AND e.object_id IN (SELECT r.id FROM evaluation_run r "
    "JOIN evaluation_answer o ON o.answer_set_id = r.answer_set_id WHERE o.id = NEW.answer_id))))"
)

RATINGS = [
    Guard(
        name="rating_is_of_the_item",
        table=_TABLE,
        on="INSERT",
        when="NEW.assignment_id IS NOT NULL",
        broken="NOT EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "
        "JOIN review_queuemetric m ON m.queue_id = i.queue_id AND m.metric_id = NEW.metric_id "
        "WHERE a.id = NEW.assignment_id AND a.reviewer_id = NEW.reviewer_id AND i.answer_id = NEW.answer_id)",
        says="a rating is by who holds the item, of its answer, for a metric of its queue",
    ),
    Guard(
        name="rating_on_a_lease",
        table=_TABLE,
        on="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.phase = 'initial'",
        broken="NOT EXISTS (SELECT 1 FROM review_assignment a WHERE a.id = NEW.assignment_id "
        "AND a.state IN ('submitted', 'finished') AND a.revealed_at IS NULL AND NEW.seq <= a.fence)",
        says="a lease takes one first rating of a metric, before the judge was seen",
    ),
    Guard(
        name="rating_after_the_first",
        table=_TABLE,
        on="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.phase = 'final'",
        broken="NOT EXISTS (SELECT 1 FROM review_assignment a JOIN review_rating r ON r.assignment_id = a.id "
        "AND r.metric_id = NEW.metric_id AND r.phase = 'initial' WHERE a.id = NEW.assignment_id "
        "AND a.state = 'finished')",
        says="a final rating follows a first one of the same metric",
    ),
    Guard(
        name="rating_is_blind",
        table=_TABLE,
        on="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.blind",
        broken=f"{_ASSISTED} OR {_EXPOSED}",
        says="a rating is not blind in assisted mode or after its rater saw the judge",
    ),
]
