"""Overlap and leases: how an assignment begins, how it may go on, and how many of an item are live."""

from evaluation.storage.guards import Guard

_TABLE = "review_assignment"
_GONE = "('skipped', 'expired', 'flagged')"
_LIVES = f"NEW.state NOT IN {_GONE} AND (OLD.state IN {_GONE} OR NEW.slot <> OLD.slot)"
_LEASED_AGAIN = f"NEW.state = 'leased' AND OLD.state IN {_GONE}"

#: More people than the item takes. Whoever lives with the same item is counted, lapsed or not.
_OVERFULL = (
    "EXISTS (SELECT 1 FROM review_reviewitem i WHERE i.id = NEW.item_id AND (NEW.slot > i.reviews_needed OR "
    "(SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = i.id "
    "AND a.state NOT IN ('skipped', 'expired', 'flagged') AND a.reviewer_id <> NEW.reviewer_id) >= i.reviews_needed))"
)
_ITEM = "review_reviewitem i WHERE i.id = NEW.item_id"

#: No such item for this person: in an open queue they are a member of, and kept for them where it is kept.
_OUT_OF_SCOPE = (
    "NOT EXISTS (SELECT 1 FROM review_reviewitem i JOIN review_reviewqueue q ON q.id = i.queue_id "
    "JOIN review_queuemember m ON m.queue_id = q.id AND m.reviewer_id = NEW.reviewer_id "
    "WHERE i.id = NEW.item_id AND q.id = NEW.queue_id AND q.state = 'open' AND (NOT i.reserved OR EXISTS "
    "(SELECT 1 FROM review_reservation r WHERE r.item_id = i.id AND r.reviewer_id = NEW.reviewer_id)))"
)

ASSIGNMENTS = [
    Guard(
        name="lease_begins",
        table=_TABLE,
        on="INSERT",
        when="NEW.state <> 'leased' OR NEW.fence <> 1",
        says="an assignment begins as a lease, with fence 1",
    ),
    Guard(
        name="lease_is_in_scope",
        table=_TABLE,
        on="INSERT",
        broken=_OUT_OF_SCOPE,
        says="only members of an open queue get its items, and only those kept for them where an item is kept",
    ),
    Guard(
        name="lease_of_an_open_item",
        table=_TABLE,
        on="INSERT",
        broken="NOT EXISTS (SELECT 1 FROM review_reviewitem i WHERE i.id = NEW.item_id AND i.state = 'open')",
        says="an item that is done, withdrawn or in dispute is given to nobody else",
    ),
    Guard(
        name="lease_again_is_in_scope",
        table=_TABLE,
        on="UPDATE OF state",
        when=_LEASED_AGAIN,
        broken=_OUT_OF_SCOPE,
        says="only members of an open queue hold its items, and only those kept for them where an item is kept",
    ),
    Guard(
        name="overlap_of_new",
        table=_TABLE,
        on="INSERT",
        locks=_ITEM,
        broken=_OVERFULL,
        says="an item never has more live assignments than reviews needed",
    ),
    Guard(
        name="overlap_of_renewed",
        table=_TABLE,
        on="UPDATE OF state, slot",
        when=_LIVES,
        locks=_ITEM,
        broken=_OVERFULL,
        says="an item never has more live assignments than reviews needed",
    ),
    Guard(
        name="assignment_stays",
        table=_TABLE,
        on="UPDATE OF item_id, queue_id, reviewer_id",
        when="NEW.item_id <> OLD.item_id OR NEW.queue_id <> OLD.queue_id OR NEW.reviewer_id <> OLD.reviewer_id",
        says="an assignment keeps its item, its queue and its reviewer",
    ),
    Guard(
        name="assignment_moves",
        table=_TABLE,
        on="UPDATE OF state",
        when="NEW.state <> OLD.state AND NOT ("
        "(OLD.state = 'leased' AND NEW.state IN ('submitted', 'finished', 'skipped', 'flagged', 'expired')) "
        "OR (OLD.state = 'expired' AND NEW.state IN ('leased', 'skipped', 'flagged')) "
        "OR (OLD.state = 'skipped' AND NEW.state = 'leased') "
        "OR (OLD.state = 'submitted' AND NEW.state IN ('revealed', 'leased')) "
        "OR (OLD.state = 'revealed' AND NEW.state = 'finished') "
        "OR (OLD.state = 'finished' AND NEW.state = 'leased' AND OLD.revealed_at IS NULL))",
        says="an assignment is rated from a live lease only, and moves no other way than this either",
    ),
    Guard(
        name="fence_counts_leases",
        table=_TABLE,
        on="UPDATE OF state, fence",
        when="NEW.fence <> OLD.fence + (CASE WHEN NEW.state = 'leased' AND OLD.state <> 'leased' THEN 1 ELSE 0 END)",
        says="the fence rises by one with each lease, and never else",
    ),
    Guard(
        name="reveal_is_for_good",
        table=_TABLE,
        on="UPDATE OF revealed_at",
        when="OLD.revealed_at IS NOT NULL AND (NEW.revealed_at IS NULL OR NEW.revealed_at <> OLD.revealed_at)",
        says="who has seen the judge has seen it",
    ),
    Guard(
        name="reveal_after_rating",
        table=_TABLE,
        on="UPDATE OF revealed_at",
        when="OLD.revealed_at IS NULL AND NEW.revealed_at IS NOT NULL",
        broken="NOT EXISTS (SELECT 1 FROM review_rating r WHERE r.assignment_id = NEW.id AND r.phase = 'initial')",
        says="the judge is not shown before a rating is in",
    ),
]
