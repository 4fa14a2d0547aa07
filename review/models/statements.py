"""SQL of the reviewer's path: the next item and the submit. No other module of the review app writes SQL.

Reviewers wait for these statements with every item, and the ORM takes several times longer to build them than the
databases take to answer. ``tests/review/test_reviewing_queries.py`` limits their number per request; their results are
tested where they are used, on both databases."""

from django.db.models import CharField, DateTimeField, JSONField, TextField

from evaluation.accounts.access import project_access_sql
from evaluation.core.roles import Action
from evaluation.models import Answer, JudgeVersion, MetricDefinition, Question, RubricVersion, Score
from evaluation.scoring.scores import COUNTING
from evaluation.storage.statements import Columns, Statement
from review.models.guards import exposure_sql
from review.models.queues import Assignment, Draft, QueueMember, ReviewItem, ReviewQueue

#: Common parts of the statements.
_PARTS = {
    "REACHED": project_access_sql(Action.RATE, "q.project_id"),
    "HELD": "review_assignment a JOIN review_reviewitem i ON i.id = a.item_id",
    "SHOWN": "JOIN evaluation_answer w ON w.id = i.answer_id JOIN evaluation_question s ON s.id = w.question_id",
    "HOLDS": "a.state NOT IN ('skipped', 'expired', 'flagged')",
    "DRAFT": "LEFT JOIN review_draft d ON d.assignment_id = a.id",
}

#: A queue for its members, in a project in which they may rate.
QUEUE_FOR_RATING = Statement(
    """
SELECT {q} FROM review_reviewqueue q
WHERE q.id = %(queue)s AND {REACHED}
AND EXISTS (SELECT 1 FROM review_queuemember m WHERE m.queue_id = q.id AND m.reviewer_id = %(user)s)
""",
    q=ReviewQueue,
    **_PARTS,
)

#: An assignment of the user, with item and queue.
OWN_ASSIGNMENT = Statement(
    """
SELECT {a}, {i}, {q} FROM {HELD} JOIN review_reviewqueue q ON q.id = i.queue_id
WHERE a.id = %(assignment)s AND a.reviewer_id = %(user)s AND {REACHED}
""",
    a=Assignment,
    i=ReviewItem,
    q=ReviewQueue,
    **_PARTS,
)

#: An assignment of the user, with all rows of its card.
OWN_CARD = Statement(
    """
SELECT {a}, {i}, {q}, {w}, {s}, {d} FROM {HELD} {SHOWN} {DRAFT} JOIN review_reviewqueue q ON q.id = i.queue_id
WHERE a.id = %(assignment)s AND a.reviewer_id = %(user)s AND {REACHED}
""",
    a=Assignment,
    i=ReviewItem,
    q=ReviewQueue,
    w=Answer,
    s=Question,
    d=Draft,
    **_PARTS,
)

#: A locked membership and the database's time, to lease an item. A crash may lose the lease; it is then made again.
MEMBER = Statement(
    """
SELECT {m}, {NOW}, {ASYNC_COMMIT} FROM review_queuemember m
WHERE m.queue_id = %(queue)s AND m.reviewer_id = %(reviewer)s""",
    locks="m",
    m=QueueMember,
    now=DateTimeField(),
)

#: The user's oldest lease of an open item; later ones may be prefetched.
OLDEST_LEASE = Statement(
    """
SELECT {a}, {i}, {w}, {s}, {d} FROM {HELD} {SHOWN} {DRAFT}
WHERE a.reviewer_id = %(reviewer)s AND a.queue_id = %(queue)s AND a.state = 'leased' AND i.state = 'open'
ORDER BY a.id LIMIT 1
""",
    a=Assignment,
    i=ReviewItem,
    w=Answer,
    s=Question,
    d=Draft,
    **_PARTS,
)

EXTEND_LEASE = Statement(
    "UPDATE review_assignment SET lease_until = %(until)s WHERE id = %(assignment)s AND state = 'leased'"
)

# The next item, locked, with the rows of its card: open, available to the person, with a free slot or an expired lease,
# and not among the lost ones. The list of lost ids must not be empty, so it contains 0.
_FREE_ITEM = """
SELECT {i}, {w}, {s} FROM review_reviewitem i {SHOWN} WHERE i.id = (
  SELECT i.id FROM review_reviewitem i
  WHERE i.queue_id = %(queue)s AND i.state = 'open' AND i.occasion = 1 AND {PLACE} AND {HAD}
  AND (NOT i.reserved OR EXISTS (
    SELECT 1 FROM review_reservation r WHERE r.item_id = i.id AND r.reviewer_id = %(reviewer)s))
  AND i.reviews_needed > (
    SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = i.id
    AND {HOLDS} AND NOT (a.state = 'leased' AND a.lease_until < %(now)s))
  AND i.id NOT IN %(lost)s
  ORDER BY i.shuffle_key LIMIT 1)
"""
_OWN_ASSIGNMENT_EXISTS = (
    "EXISTS (SELECT 1 FROM review_assignment m WHERE m.item_id = i.id AND m.reviewer_id = %(reviewer)s"
)


def _free_item_statement(position_condition: str, assignment_condition: str) -> Statement:
    return Statement(
        _FREE_ITEM,
        locks="i",
        i=ReviewItem,
        w=Answer,
        s=Question,
        PLACE=position_condition,
        HAD=assignment_condition,
        **_PARTS,
    )


FREE_AFTER_OFFSET = _free_item_statement("i.shuffle_key > %(offset)s", f"NOT {_OWN_ASSIGNMENT_EXISTS})")
FREE_UP_TO_OFFSET = _free_item_statement("i.shuffle_key <= %(offset)s", f"NOT {_OWN_ASSIGNMENT_EXISTS})")
FREE_LAPSED = _free_item_statement("TRUE", f"{_OWN_ASSIGNMENT_EXISTS} AND m.state = 'expired')")

#: A locked item.
ITEM = Statement("SELECT {i} FROM review_reviewitem i WHERE i.id = %(item)s", locks="i", i=ReviewItem)

#: The held slots of an item, and whether each lease has expired.
SLOTS = Statement(
    """
SELECT a.slot, a.state = 'leased' AND a.lease_until < {NOW} FROM review_assignment a
WHERE a.item_id = %(item)s AND {HOLDS}
""",
    **_PARTS,
)

#: Leases the lowest free slot of an item: the first, or one after a held slot. No row without a free slot.
LEASE = Statement(
    """
INSERT INTO review_assignment (created_at, item_id, queue_id, reviewer_id, slot, state, lease_until, fence, opened_at)
SELECT %(now)s, %(item)s, %(queue)s, %(reviewer)s, f.slot, 'leased', %(until)s, 1, %(now)s FROM (
  SELECT 1 AS slot UNION ALL SELECT a.slot + 1 FROM review_assignment a WHERE a.item_id = %(item)s AND {HOLDS}) f
WHERE f.slot <= %(needed)s AND NOT EXISTS (
  SELECT 1 FROM review_assignment a WHERE a.item_id = %(item)s AND {HOLDS} AND a.slot = f.slot)
ORDER BY f.slot LIMIT 1 RETURNING id, slot
""",
    **_PARTS,
)

COUNT_SERVED = Statement(
    'UPDATE review_queuemember SET "offset" = %(offset)s, served = served + 1 WHERE id = %(member)s'
)

#: Turns a lease into a rating. No row without a lease, so that only one of two submits counts.
CLAIM = Statement(
    """
UPDATE review_assignment SET state = %(into)s, submitted_at = {NOW}
WHERE id = %(assignment)s AND state = 'leased' AND revealed_at IS NULL
RETURNING lease_until, submitted_at, slot, fence
""",
    lease_until=DateTimeField(),
    submitted_at=DateTimeField(),
)

_EXPOSED = exposure_sql("%(user)s", "%(answer)s")
#: Whether a user has seen a judge's value of an answer.
EXPOSED = Statement(_EXPOSED)

#: Conditions of a submit: whether the queue is open, whether the user has seen the judge, the number of the last rating
#: of the item, and whether one of the keys was used for it.
SUBMIT_STATE = Statement(
    """
SELECT q.state = 'open', EXISTS ({EXPOSED}),
  (SELECT COALESCE(MAX(t.seq), 0) FROM review_rating t WHERE t.assignment_id = %(assignment)s AND t.phase = 'initial'),
  EXISTS (SELECT 1 FROM review_rating t
    WHERE t.assignment_id = %(assignment)s AND t.phase = 'initial' AND t.idempotency_key IN %(keys)s)
FROM review_reviewqueue q WHERE q.id = %(queue)s
""",
    EXPOSED=_EXPOSED,
)

ASSIGNMENT_STATES = Statement("SELECT a.state FROM review_assignment a WHERE a.item_id = %(item)s")
SET_ITEM_STATE = Statement("UPDATE review_reviewitem SET state = %(state)s WHERE id = %(item)s")

#: The counting scores of an answer in a run, in the order of repeats.
ANSWER_SCORES = Statement(
    """
SELECT {s}, {j}, {r} FROM evaluation_score s
LEFT JOIN evaluation_judgeversion j ON j.id = s.judge_version_id
LEFT JOIN evaluation_rubricversion r ON r.id = s.rubric_version_id
WHERE s.answer_id = %(answer)s AND s.run_id = %(run)s AND s.metric_id IN %(metrics)s AND {COUNTING}
ORDER BY s.repeat, s.id
""",
    s=Score,
    j=Columns(JudgeVersion, "name", "version", "endpoint", "params"),
    r=Columns(RubricVersion, "family", "version"),
    COUNTING=COUNTING,
)

#: The passages of an answer, in the order the system used them.
PASSAGES = Statement(
    """
SELECT c.source, c.text, c.metadata FROM evaluation_context c WHERE c.answer_id = %(answer)s ORDER BY c.position
""",
    source=CharField(),
    text=TextField(),
    metadata=JSONField(),
)

#: The newest version of a metric with which an answer was scored in a run, by name.
SCORED_BY = Statement(
    """
SELECT {m} FROM evaluation_metricdefinition m
WHERE m.name = %(name)s AND EXISTS (
  SELECT 1 FROM evaluation_score s WHERE s.answer_id = %(answer)s AND s.run_id = %(run)s AND s.metric_id = m.id)
ORDER BY m.version DESC LIMIT 1
""",
    m=MetricDefinition,
)

#: A user's rated, skipped and flagged items by queue, and the median active milliseconds of the last thirty items, if
#: at least ten of them were timed. Limited to thirty, because reviewers wait for it with every item.
OWN_PROGRESS = Statement(
    """
WITH done AS MATERIALIZED (
  SELECT a.queue_id,
    SUM(CASE WHEN a.state IN ('submitted', 'revealed', 'finished') THEN 1 ELSE 0 END) AS rated,
    SUM(CASE WHEN a.state = 'skipped' THEN 1 ELSE 0 END) AS skipped,
    SUM(CASE WHEN a.state = 'flagged' THEN 1 ELSE 0 END) AS flagged
  FROM review_assignment a WHERE a.reviewer_id = %(user)s AND a.queue_id IN %(queues)s GROUP BY a.queue_id)
SELECT d.queue_id, d.rated, d.skipped, d.flagged, (
  SELECT AVG(looked) FROM (
    SELECT looked, COUNT(*) OVER () AS n, ROW_NUMBER() OVER (ORDER BY looked) AS place FROM (
      SELECT MAX(t.active_ms) AS looked FROM (
        SELECT a.id FROM review_assignment a
        WHERE a.reviewer_id = %(user)s AND a.queue_id = d.queue_id AND a.submitted_at IS NOT NULL
        ORDER BY a.submitted_at DESC LIMIT 30) l
      JOIN review_rating t ON t.assignment_id = l.id AND t.phase = 'initial' AND t.active_ms IS NOT NULL
      GROUP BY l.id) measured) placed
  WHERE n >= 10 AND place IN ((n + 1) / 2, (n + 2) / 2))
FROM done d
"""
)

#: By queue, the number of reserved items, and of withdrawn ones among the others. SQLite uses an index only for IN, not
#: for a bare boolean; the plus keeps it from walking the whole queue for the second count.
OUTSIDE_POOL = Statement("""
SELECT q.id,
  (SELECT COUNT(*) FROM review_reviewitem i WHERE i.queue_id = q.id AND i.occasion = 1 AND i.reserved IN (TRUE)),
  (SELECT COUNT(*) FROM review_reviewitem i
    WHERE i.queue_id = q.id AND i.state = 'withdrawn' AND +i.occasion = 1 AND NOT i.reserved)
FROM review_reviewqueue q WHERE q.id IN %(queues)s
""")

#: A user's reserved items by queue. A condition on the queue would make the database start from its items.
RESERVED_FOR_USER = Statement("""
SELECT i.queue_id, COUNT(*) FROM review_reservation r JOIN review_reviewitem i ON i.id = r.item_id
WHERE r.reviewer_id = %(user)s AND i.occasion = 1 AND i.state <> 'withdrawn' GROUP BY i.queue_id
""")

#: The assignment that a user rated last in a queue.
LAST_RATED = Statement(
    """
SELECT {a} FROM review_assignment a
WHERE a.reviewer_id = %(user)s AND a.queue_id = %(queue)s AND a.submitted_at IS NOT NULL
ORDER BY a.submitted_at DESC, a.id DESC LIMIT 1
""",
    a=Assignment,
)


def assemble_assignment(
    assignment: Assignment,
    item: ReviewItem,
    queue: ReviewQueue,
    answer: Answer,
    question: Question,
    draft: Draft | None,
) -> Assignment:
    """Link the rows that the statements read into an assignment with all data of its card."""
    answer.question, item.answer, item.queue, assignment.item = question, answer, queue, item
    Assignment._meta.get_field("draft").set_cached_value(assignment, draft)
    return assignment
