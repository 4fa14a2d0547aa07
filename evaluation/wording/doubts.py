"""What makes a run's judge less to be trusted than its figures look."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

SENTENCES = {
    "other_model": _("%(judge)s was asked for the model %(asked)s, but %(answered)s answered."),
    "several_models": _(
        "Several models answered under the name of %(judge)s (replies of each in brackets): %(answered)s. The scores "
        "of this run are not one series."
    ),
    "changed_model": _(
        "%(judge)s was answered by %(earlier)s in run %(run)s and is answered by %(answered)s now: scores before and "
        "after are not one series."
    ),
    "same_family": _(
        "Judge and system use models of one family (%(family)s). Judges favour their own kind; have experts rate a "
        "sample, or use a judge of another family."
    ),
    "no_usage": _("%(judge)s does not tell how many tokens it uses: what the run costs stays unknown."),
    "grows_with_length": _(
        "%(metric)s grows with the length of the answer: rank correlation %(rho)s (95%% interval %(low)s to %(high)s, "
        "%(n)s answers). Longer answers may be better, or the judge may be taken in by length."
    ),
}
