"""States of prompt approvals in words."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from evaluation.messages.explanations import explain_lapse
from review.calibration.approvals import ApprovalState, RunApproval

STATES: dict[ApprovalState, str | Promise] = {
    ApprovalState.APPROVED: _("approved"),
    ApprovalState.STALE: _("stale"),
    ApprovalState.NONE: _("none"),
}


def approval_state(approval: RunApproval) -> str:
    return str(STATES[approval.state])


def approval_reason(approval: RunApproval) -> str:
    """Reason why the approval lapsed, or the test it rests on."""
    if approval.state is ApprovalState.NONE:
        return str(_("No version of this prompt is approved for these questions."))
    if approval.lapses:
        return " ".join(explain_lapse(lapse.code, lapse.params) for lapse in approval.lapses)
    return str(_("Accepted in %(look)s on %(answers)d answers.")) % {"look": approval.look, "answers": approval.answers}
