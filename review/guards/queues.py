"""Scope, and what is settled once a queue is under way: whose it is, what it asks for, which answers it holds."""

from evaluation.storage.guards import Guard

_HANDED_OUT = "EXISTS (SELECT 1 FROM review_assignment a JOIN review_reviewitem i ON i.id = a.item_id "

QUEUES = [
    Guard(
        name="queue_stays",
        table="review_reviewqueue",
        on="UPDATE OF project_id, mode",
        when="NEW.project_id <> OLD.project_id OR NEW.mode <> OLD.mode",
        broken=_HANDED_OUT + "WHERE i.queue_id = NEW.id)",
        says="a queue that is under way keeps its project, and stays blind or assisted",
    ),
    Guard(
        name="queue_asks_the_same",
        table="review_queuemetric",
        on="UPDATE",
        when="NEW.queue_id <> OLD.queue_id OR NEW.metric_id <> OLD.metric_id OR NEW.position <> OLD.position "
        "OR COALESCE(NEW.rubric_version_id, 0) <> COALESCE(OLD.rubric_version_id, 0)",
        says="what a queue asks for never changes",
    ),
    Guard(
        name="queue_asks_no_more",
        table="review_queuemetric",
        on="INSERT",
        broken=_HANDED_OUT + "WHERE i.queue_id = NEW.queue_id)",
        says="a queue that is under way asks for nothing else",
    ),
    Guard(
        name="member_of_project",
        table="review_queuemember",
        on="INSERT",
        broken="NOT EXISTS (SELECT 1 FROM review_reviewqueue q JOIN evaluation_rolegrant g "
        "ON g.project_id = q.project_id AND g.user_id = NEW.reviewer_id WHERE q.id = NEW.queue_id) "
        "AND NOT EXISTS (SELECT 1 FROM evaluation_user u WHERE u.id = NEW.reviewer_id AND u.is_superuser)",
        says="members of a queue have a role in its project",
    ),
    Guard(
        name="item_of_project",
        table="review_reviewitem",
        on="INSERT",
        broken="NOT EXISTS (SELECT 1 FROM review_reviewqueue q JOIN evaluation_run r ON r.project_id = q.project_id "
        "JOIN evaluation_answer a ON a.answer_set_id = r.answer_set_id "
        "WHERE q.id = NEW.queue_id AND r.id = NEW.run_id AND a.id = NEW.answer_id)",
        says="an item is an answer of its run, and that of the queue in one project",
    ),
    Guard(
        name="item_stays",
        table="review_reviewitem",
        on="UPDATE OF queue_id, answer_id, run_id, occasion",
        when="NEW.queue_id <> OLD.queue_id OR NEW.answer_id <> OLD.answer_id OR NEW.run_id <> OLD.run_id "
        "OR NEW.occasion <> OLD.occasion",
        says="an item keeps its queue, answer, run and occasion",
    ),
    Guard(
        name="overlap_of_item",
        table="review_reviewitem",
        on="UPDATE OF reviews_needed",
        when="NEW.reviews_needed < OLD.reviews_needed",
        broken="(SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = NEW.id "
        "AND a.state NOT IN ('skipped', 'expired', 'flagged')) > NEW.reviews_needed",
        says="an item never has more live assignments than reviews needed",
    ),
    Guard(
        name="kept_for_member",
        table="review_reservation",
        on="INSERT",
        broken="NOT EXISTS (SELECT 1 FROM review_reviewitem i JOIN review_queuemember m ON m.queue_id = i.queue_id "
        "WHERE i.id = NEW.item_id AND m.reviewer_id = NEW.reviewer_id)",
        says="an item is kept for members of its queue",
    ),
]
