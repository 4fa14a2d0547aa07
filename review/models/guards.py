"""Database guards across rows, for all writers: overlap, leases, blindness and scope.

Constraints of :mod:`review.models` check single rows. Imported ratings have no assignment and are not checked here."""

from functools import partial

from evaluation.storage.guards import Guard

_ENDED_STATES = "('skipped', 'expired', 'flagged')"
_BECOMES_LIVE = f"NEW.state NOT IN {_ENDED_STATES} AND (OLD.state IN {_ENDED_STATES} OR NEW.slot <> OLD.slot)"
_LEASED_AGAIN = f"NEW.state = 'leased' AND OLD.state IN {_ENDED_STATES}"

#: More people than the item takes. Everybody with a live assignment counts, even with an expired lease.
_OVERFULL = (
    "EXISTS (SELECT 1 FROM review_reviewitem i WHERE i.id = NEW.item_id AND (NEW.slot > i.reviews_needed OR "
    "(SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = i.id "
    "AND a.state NOT IN ('skipped', 'expired', 'flagged') AND a.reviewer_id <> NEW.reviewer_id) >= i.reviews_needed))"
)
_ITEM = "review_reviewitem i WHERE i.id = NEW.item_id"

#: The item is out of reach for this person: no member of its open queue, or reserved for others.
_OUT_OF_SCOPE = (
    "NOT EXISTS (SELECT 1 FROM review_reviewitem i JOIN review_reviewqueue q ON q.id = i.queue_id "
    "JOIN review_queuemember m ON m.queue_id = q.id AND m.reviewer_id = NEW.reviewer_id "
    "WHERE i.id = NEW.item_id AND q.id = NEW.queue_id AND q.state = 'open' AND (NOT i.reserved OR EXISTS "
    "(SELECT 1 FROM review_reservation r WHERE r.item_id = i.id AND r.reviewer_id = NEW.reviewer_id)))"
)

_assignment = partial(Guard, table="review_assignment")
ASSIGNMENTS = [
    _assignment(
        name="lease_begins",
        event="INSERT",
        when="NEW.state <> 'leased' OR NEW.fence <> 1",
        message="an assignment begins as a lease, with fence 1",
    ),
    _assignment(
        name="lease_is_in_scope",
        event="INSERT",
        violated_when=_OUT_OF_SCOPE,
        message="only members of an open queue get its items, and only those kept for them where an item is kept",
    ),
    _assignment(
        name="lease_of_an_open_item",
        event="INSERT",
        violated_when="NOT EXISTS (SELECT 1 FROM review_reviewitem i WHERE i.id = NEW.item_id AND i.state = 'open')",
        message="an item that is done, withdrawn or in dispute is given to nobody else",
    ),
    _assignment(
        name="lease_again_is_in_scope",
        event="UPDATE OF state",
        when=_LEASED_AGAIN,
        violated_when=_OUT_OF_SCOPE,
        message="only members of an open queue hold its items, and only those kept for them where an item is kept",
    ),
    _assignment(
        name="overlap_of_new",
        event="INSERT",
        locks=_ITEM,
        violated_when=_OVERFULL,
        message="an item never has more live assignments than reviews needed",
    ),
    _assignment(
        name="overlap_of_renewed",
        event="UPDATE OF state, slot",
        when=_BECOMES_LIVE,
        locks=_ITEM,
        violated_when=_OVERFULL,
        message="an item never has more live assignments than reviews needed",
    ),
    _assignment(
        name="assignment_stays",
        event="UPDATE OF item_id, queue_id, reviewer_id",
        when="NEW.item_id <> OLD.item_id OR NEW.queue_id <> OLD.queue_id OR NEW.reviewer_id <> OLD.reviewer_id",
        message="an assignment keeps its item, its queue and its reviewer",
    ),
    _assignment(
        name="assignment_moves",
        event="UPDATE OF state",
        when="NEW.state <> OLD.state AND NOT ("
        "(OLD.state = 'leased' AND NEW.state IN ('submitted', 'finished', 'skipped', 'flagged', 'expired')) "
        "OR (OLD.state = 'expired' AND NEW.state IN ('leased', 'skipped', 'flagged')) "
        "OR (OLD.state = 'skipped' AND NEW.state = 'leased') "
        "OR (OLD.state = 'submitted' AND NEW.state IN ('revealed', 'leased')) "
        "OR (OLD.state = 'revealed' AND NEW.state = 'finished') "
        "OR (OLD.state = 'finished' AND NEW.state = 'leased' AND OLD.revealed_at IS NULL))",
        message="an assignment is rated from a live lease only, and moves no other way than this either",
    ),
    _assignment(
        name="fence_counts_leases",
        event="UPDATE OF state, fence",
        when="NEW.fence <> OLD.fence + (CASE WHEN NEW.state = 'leased' AND OLD.state <> 'leased' THEN 1 ELSE 0 END)",
        message="the fence rises by one with each lease, and never else",
    ),
    _assignment(
        name="reveal_is_for_good",
        event="UPDATE OF revealed_at",
        when="OLD.revealed_at IS NOT NULL AND (NEW.revealed_at IS NULL OR NEW.revealed_at <> OLD.revealed_at)",
        message="who has seen the judge has seen it",
    ),
    _assignment(
        name="reveal_after_rating",
        event="UPDATE OF revealed_at",
        when="OLD.revealed_at IS NULL AND NEW.revealed_at IS NOT NULL",
        violated_when="NOT EXISTS (SELECT 1 FROM review_rating r WHERE r.assignment_id = NEW.id AND r.phase = "
        "'initial')",
        message="the judge is not shown before a rating is in",
    ),
]


_ITEM_ASSIGNED = "EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "

_item = partial(Guard, table="review_reviewitem")
QUEUES = [
    Guard(
        name="queue_stays",
        table="review_reviewqueue",
        event="UPDATE OF project_id, mode",
        when="NEW.project_id <> OLD.project_id OR NEW.mode <> OLD.mode",
        violated_when=_ITEM_ASSIGNED + "WHERE i.queue_id = NEW.id)",
        message="a queue that is under way keeps its project, and stays blind or assisted",
    ),
    Guard(
        name="queue_asks_the_same",
        table="review_queuemetric",
        event="UPDATE",
        when="NEW.queue_id <> OLD.queue_id OR NEW.metric_id <> OLD.metric_id OR NEW.position <> OLD.position "
        "OR COALESCE(NEW.rubric_version_id, 0) <> COALESCE(OLD.rubric_version_id, 0)",
        message="what a queue asks for never changes",
    ),
    Guard(
        name="queue_asks_no_more",
        table="review_queuemetric",
        event="INSERT",
        violated_when=_ITEM_ASSIGNED + "WHERE i.queue_id = NEW.queue_id)",
        message="a queue that is under way asks for nothing else",
    ),
    Guard(
        name="member_of_project",
        table="review_queuemember",
        event="INSERT",
        violated_when="NOT EXISTS (SELECT 1 FROM review_reviewqueue q JOIN evaluation_rolegrant g "
        "ON g.project_id = q.project_id AND g.user_id = NEW.reviewer_id WHERE q.id = NEW.queue_id) "
        "AND NOT EXISTS (SELECT 1 FROM evaluation_user u WHERE u.id = NEW.reviewer_id AND u.is_superuser)",
        message="members of a queue have a role in its project",
    ),
    _item(
        name="item_of_project",
        event="INSERT",
        violated_when="NOT EXISTS (SELECT 1 FROM review_reviewqueue q JOIN evaluation_run r ON r.project_id = "
        "q.project_id "
        "JOIN evaluation_answer a ON a.answer_set_id = r.answer_set_id "
        "WHERE q.id = NEW.queue_id AND r.id = NEW.run_id AND a.id = NEW.answer_id)",
        message="an item is an answer of its run, and that of the queue in one project",
    ),
    _item(
        name="item_stays",
        event="UPDATE OF queue_id, answer_id, run_id, occasion, metric_ids",
        when="NEW.queue_id <> OLD.queue_id OR NEW.answer_id <> OLD.answer_id OR NEW.run_id <> OLD.run_id "
        "OR NEW.occasion <> OLD.occasion OR NEW.metric_ids <> OLD.metric_ids",
        message="an item keeps its queue, answer, run, occasion and what it asks",
    ),
    _item(
        name="overlap_of_item",
        event="UPDATE OF reviews_needed",
        when="NEW.reviews_needed < OLD.reviews_needed",
        violated_when="(SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = NEW.id "
        "AND a.state NOT IN ('skipped', 'expired', 'flagged')) > NEW.reviews_needed",
        message="an item never has more live assignments than reviews needed",
    ),
    Guard(
        name="kept_for_member",
        table="review_reservation",
        event="INSERT",
        violated_when="NOT EXISTS (SELECT 1 FROM review_reviewitem i "
        "JOIN review_queuemember m ON m.queue_id = i.queue_id WHERE i.id = NEW.item_id AND m.reviewer_id = "
        "NEW.reviewer_id)",
        message="an item is kept for members of its queue",
    ),
]


def exposure_sql(user: str, answer: str) -> str:
    """Subquery with a row if the user has seen a judge's value of the answer or of one with the same text to the same
    question, alone or with a run. Arguments are SQL expressions."""
    return (
        "SELECT 1 FROM evaluation_answer w JOIN evaluation_answer o ON o.question_id = w.question_id "  # noqa: S608 -- names of ours
        "AND (o.id = w.id OR (o.text = w.text AND w.text <> '')) "
        f"WHERE w.id = {answer} AND (EXISTS (SELECT 1 FROM review_exposure e WHERE e.user_id = {user} "
        "AND e.scope = 'answer' AND e.object_id = o.id) OR EXISTS (SELECT 1 FROM evaluation_run r "
        f"JOIN review_exposure e ON e.user_id = {user} AND e.scope = 'run' AND e.object_id = r.id "
        "WHERE r.answer_set_id = o.answer_set_id))"
    )


_ASSISTED = (
    "EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "
    "JOIN review_reviewqueue q ON q.id = i.queue_id WHERE a.id = NEW.assignment_id AND q.mode <> 'blind')"
)
_EXPOSED = f"EXISTS ({exposure_sql('NEW.reviewer_id', 'NEW.answer_id')})"
_TOKEN_OF_ANOTHER = (
    "EXISTS (SELECT 1 FROM evaluation_apitoken t WHERE t.id = NEW.token_id "
    "AND (t.made_by_id IS NULL OR t.made_by_id <> NEW.reviewer_id))"
)

_rating = partial(Guard, table="review_rating")
RATINGS = [
    _rating(
        name="rating_is_of_the_item",
        event="INSERT",
        when="NEW.assignment_id IS NOT NULL",
        violated_when="NOT EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "
        "JOIN review_queuemetric m ON m.queue_id = i.queue_id AND m.metric_id = NEW.metric_id "
        "WHERE a.id = NEW.assignment_id AND a.reviewer_id = NEW.reviewer_id AND i.answer_id = NEW.answer_id)",
        message="a rating is by who holds the item, of its answer, for a metric of its queue",
    ),
    _rating(
        name="rating_on_a_lease",
        event="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.phase = 'initial'",
        violated_when="NOT EXISTS (SELECT 1 FROM review_assignment a WHERE a.id = NEW.assignment_id "
        "AND a.state IN ('submitted', 'finished') AND a.revealed_at IS NULL AND NEW.seq <= a.fence)",
        message="a lease takes one first rating of a metric, before the judge was seen",
    ),
    _rating(
        name="rating_after_the_first",
        event="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.phase = 'final'",
        violated_when="NOT EXISTS (SELECT 1 FROM review_assignment a JOIN review_rating r ON r.assignment_id = a.id "
        "AND r.metric_id = NEW.metric_id AND r.phase = 'initial' WHERE a.id = NEW.assignment_id "
        "AND a.state = 'finished')",
        message="a final rating follows a first one of the same metric",
    ),
    _rating(
        name="rating_is_blind",
        event="INSERT",
        when="NEW.assignment_id IS NOT NULL AND NEW.blind",
        violated_when=f"{_ASSISTED} OR {_EXPOSED} OR {_TOKEN_OF_ANOTHER}",
        message="a rating is not blind in assisted mode, after its rater saw the judge, or by a token another made",
    ),
]


GUARDS = [*QUEUES, *ASSIGNMENTS, *RATINGS]
