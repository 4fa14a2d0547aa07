"""What a reviewer's next item and submit ask the database, in SQL: the one place of the human half where it is written.

A reviewer waits for these with every item, and the ORM takes several times longer to put them together than both
databases take to answer them. ``tests/review/test_reviewing_queries.py`` pins how many a request takes; what they find
and what they refuse is tested where they are used, on both databases.
"""

from django.db.models import CharField, DateTimeField, JSONField, TextField

from evaluation.accounts.access import reached_sql
from evaluation.core.roles import Action
from evaluation.models import Answer, JudgeVersion, MetricDefinition, Question, RubricVersion, Score
from evaluation.scoring.writing import COUNTING
from evaluation.storage.statements import Some, Statement
from review.models.queues import Assignment, Draft, QueueMember, ReviewItem, ReviewQueue

#: What statements name in common.
_PARTS = {
    "REACHED": reached_sql(Action.RATE, "q.project_id"),
    "HELD": "review_assignment a JOIN review_reviewitem i ON i.id = a.item_id",
    "SHOWN": "JOIN evaluation_answer w ON w.id = i.answer_id JOIN evaluation_question s ON s.id = w.question_id",
    "HOLDS": "a.state NOT IN ('skipped', 'expired', 'flagged')",
    "DRAFT": "LEFT JOIN review_draft d ON d.assignment_id = a.id",
}

#: A queue for its members, in a project they may rate in.
QUEUE_FOR_RATING = Statement(
    """
SELECT {q} FROM review_reviewqueue q
WHERE q.id = %(queue)s AND {REACHED}
AND EXISTS (SELECT 1 FROM review_queuemember m WHERE m.queue_id = q.id AND m.reviewer_id = %(user)s)
""",
    q=ReviewQueue,
    **_PARTS,
)

#: An assignment of the person's own, with item and queue.
OWN = Statement(
    """
SELECT {a}, {i}, {q} FROM {HELD} JOIN review_reviewqueue q ON q.id = i.queue_id
WHERE a.id = %(assignment)s AND a.reviewer_id = %(user)s AND {REACHED}
""",
    a=Assignment,
    i=ReviewItem,
    q=ReviewQueue,
    **_PARTS,
)

#: The same with what a card shows.
OWN_SHOWN = Statement(
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

#: A membership, locked, and the database's time, to hand an item out: a lease that a crash takes back is given anew.
MEMBER = Statement(
    """
SELECT {m}, {NOW}, {UNHURRIED} FROM review_queuemember m
WHERE m.queue_id = %(queue)s AND m.reviewer_id = %(reviewer)s""",
    locks="m",
    m=QueueMember,
    now=DateTimeField(),
)

#: The oldest lease the person holds of an open item: what follows it may be reserved already.
LEASED = Statement(
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

PROLONG = Statement(
    "UPDATE review_assignment SET lease_until = %(until)s WHERE id = %(assignment)s AND state = 'leased'"
)

# The next item, locked, with what a card shows: open, for this person, with a slot that is free or whose lease lapsed,
# and not lost to somebody else (0 is nobody's, for a list may not be empty there).
_FREE = """
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
_MINE = "EXISTS (SELECT 1 FROM review_assignment m WHERE m.item_id = i.id AND m.reviewer_id = %(reviewer)s"


def _free(place: str, had: str) -> Statement:
    return Statement(_FREE, locks="i", i=ReviewItem, w=Answer, s=Question, PLACE=place, HAD=had, **_PARTS)


FREE_AHEAD = _free("i.shuffle_key > %(offset)s", f"NOT {_MINE})")
FREE_BEHIND = _free("i.shuffle_key <= %(offset)s", f"NOT {_MINE})")
FREE_LET_LAPSE = _free("TRUE", f"{_MINE} AND m.state = 'expired')")

#: An item, locked.
ITEM = Statement("SELECT {i} FROM review_reviewitem i WHERE i.id = %(item)s", locks="i", i=ReviewItem)

#: The slots of an item that somebody holds, and whether the lease has lapsed.
SLOTS = Statement(
    """
SELECT a.slot, a.state = 'leased' AND a.lease_until < {NOW} FROM review_assignment a
WHERE a.item_id = %(item)s AND {HOLDS}
""",
    **_PARTS,
)

#: A lease of the lowest slot nobody holds of an item: the first, or one after a slot that is held. Nothing without one.
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

SERVED = Statement('UPDATE review_queuemember SET "offset" = %(offset)s, served = served + 1 WHERE id = %(member)s')

#: Turns a lease into a rating; nothing where it is not held, so that of two submits one counts.
CLAIM = Statement(
    """
UPDATE review_assignment SET state = %(into)s, submitted_at = {NOW}
WHERE id = %(assignment)s AND state = 'leased' AND revealed_at IS NULL
RETURNING lease_until, submitted_at, slot, fence
""",
    lease_until=DateTimeField(),
    submitted_at=DateTimeField(),
)

# Whether a person has seen a judge's value of an answer, by itself or with a run.
_EXPOSED = """
SELECT 1 FROM review_exposure e WHERE e.user_id = %(user)s AND (
  e.scope = 'answer' AND e.object_id = %(answer)s OR e.scope = 'run' AND e.object_id IN (
    SELECT r.id FROM evaluation_run r JOIN evaluation_answer w ON w.answer_set_id = r.answer_set_id
    WHERE w.id = %(answer)s))
"""
EXPOSED = Statement(_EXPOSED)

#: What a rating depends on: whether the queue is open, whether the person has seen the judge, the number of their last
#: rating of the item, and whether one of the keys was used for it.
STANDING = Statement(
    """
SELECT q.state = 'open', EXISTS ({EXPOSED}),
  (SELECT COALESCE(MAX(t.seq), 0) FROM review_rating t WHERE t.assignment_id = %(assignment)s AND t.phase = 'initial'),
  EXISTS (SELECT 1 FROM review_rating t
    WHERE t.assignment_id = %(assignment)s AND t.phase = 'initial' AND t.idempotency_key IN %(keys)s)
FROM review_reviewqueue q WHERE q.id = %(queue)s
""",
    EXPOSED=_EXPOSED,
)

STATES = Statement("SELECT a.state FROM review_assignment a WHERE a.item_id = %(item)s")
SETTLE = Statement("UPDATE review_reviewitem SET state = %(state)s WHERE id = %(item)s")

#: The counting scores of an answer in a run, repeats in their order.
SAID = Statement(
    """
SELECT {s}, {j}, {r} FROM evaluation_score s
LEFT JOIN evaluation_judgeversion j ON j.id = s.judge_version_id
LEFT JOIN evaluation_rubricversion r ON r.id = s.rubric_version_id
WHERE s.answer_id = %(answer)s AND s.run_id = %(run)s AND s.metric_id IN %(metrics)s AND {COUNTING}
ORDER BY s.repeat, s.id
""",
    s=Score,
    j=Some(JudgeVersion, "name", "version", "endpoint", "params"),
    r=Some(RubricVersion, "family", "version"),
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

#: The metric of a name by which an answer was scored in a run, in its newest version.
SCORED_BY = Statement(
    """
SELECT {m} FROM evaluation_metricdefinition m
WHERE m.name = %(name)s AND EXISTS (
  SELECT 1 FROM evaluation_score s WHERE s.answer_id = %(answer)s AND s.run_id = %(run)s AND s.metric_id = m.id)
ORDER BY m.version DESC LIMIT 1
""",
    m=MetricDefinition,
)

#: What a person has done in each of the queues: rated, skipped, flagged, and the median of the milliseconds looked at
#: each of the last thirty items, for a reviewer waits for it with every item, however many there were.
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
  WHERE place IN ((n + 1) / 2, (n + 2) / 2))
FROM done d
"""
)

#: Of each queue, how many items are kept for somebody, and how many of the others were withdrawn. SQLite does not look
#: up a bare boolean in an index, so IN; without the plus it would walk the whole queue for the second.
NOT_FOR_ALL = Statement("""
SELECT q.id,
  (SELECT COUNT(*) FROM review_reviewitem i WHERE i.queue_id = q.id AND i.occasion = 1 AND i.reserved IN (TRUE)),
  (SELECT COUNT(*) FROM review_reviewitem i
    WHERE i.queue_id = q.id AND i.state = 'withdrawn' AND +i.occasion = 1 AND NOT i.reserved)
FROM review_reviewqueue q WHERE q.id IN %(queues)s
""")

#: By queue, how many items are kept for a person. A condition on the queue would let the database start from its items.
KEPT_FOR = Statement("""
SELECT i.queue_id, COUNT(*) FROM review_reservation r JOIN review_reviewitem i ON i.id = r.item_id
WHERE r.reviewer_id = %(user)s AND i.occasion = 1 AND i.state <> 'withdrawn' GROUP BY i.queue_id
""")

#: What a person rated last in a queue.
LAST_RATED = Statement(
    """
SELECT {a} FROM review_assignment a
WHERE a.reviewer_id = %(user)s AND a.queue_id = %(queue)s AND a.submitted_at IS NOT NULL
ORDER BY a.submitted_at DESC, a.id DESC LIMIT 1
""",
    a=Assignment,
)


def held(
    assignment: Assignment,
    item: ReviewItem,
    queue: ReviewQueue,
    answer: Answer,
    question: Question,
    draft: Draft | None,
) -> Assignment:
    """An assignment that knows what a card of it needs, as the statements above have read it."""
    answer.question, item.answer, item.queue, assignment.item = question, answer, queue, item
    Assignment._meta.get_field("draft").set_cached_value(assignment, draft)
    return assignment
