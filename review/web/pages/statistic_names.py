"""What each agreement statistic is called and means, in one line each."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

#: name -> (title, meaning), in the order of the page.
STATISTICS: dict[str, tuple[str | Promise, str | Promise]] = {
    "exact": (_("exact agreement"), _("share of answers on which both said the same")),
    "within_one": (_("within one level"), _("share of answers on which they are at most one level apart")),
    "mae": (_("mean distance"), _("how many levels they are apart on average")),
    "bias": (_("bias"), _("mean of judge minus expert; above 0 the judge is generous")),
    "cohen_kappa": (_("Cohen’s κ"), _("exact agreement beyond chance; 1 is perfect, 0 is chance")),
    "cohen_kappa_linear": (_("κ, linear weights"), _("agreement beyond chance; near misses count in part")),
    "cohen_kappa_quadratic": (_("κ, quadratic weights"), _("agreement beyond chance; far misses weigh most")),
    "rmse": (_("root mean square distance"), _("like the mean distance, far misses weighing more")),
    "pearson": (_("Pearson’s r"), _("whether they rise and fall together in a straight line")),
    "spearman": (_("Spearman’s ρ"), _("whether they put the answers into the same order")),
    "kendall_tau_b": (_("Kendall’s τ-b"), _("pairs of answers put into the same order, minus the others")),
    "krippendorff_alpha_nominal": (_("Krippendorff’s α, nominal"), _("reliability; every difference counts the same")),
    "krippendorff_alpha_ordinal": (_("Krippendorff’s α, ordinal"), _("reliability; differences count by rank")),
    "krippendorff_alpha_interval": (_("Krippendorff’s α, interval"), _("reliability; differences count by square")),
    "gwet_ac1": (_("Gwet’s AC1"), _("agreement beyond chance, steady where nearly all is of one level")),
    "gwet_ac2": (_("Gwet’s AC2, quadratic"), _("the same with quadratic weights")),
    "fleiss_kappa": (_("Fleiss’ κ"), _("agreement beyond chance of several people")),
    "tpr": (_("acceptable ones found"), _("of the answers experts accept, the share the judge accepts")),
    "tnr": (_("unacceptable ones found"), _("of the answers experts reject, the share the judge rejects")),
    "precision": (_("precision"), _("of the answers the judge accepts, the share experts accept")),
    "recall": (_("recall"), _("the same as acceptable ones found")),
    "f1": (_("F1"), _("harmonic mean of precision and recall")),
    "balanced_accuracy": (_("balanced accuracy"), _("mean of acceptable and unacceptable ones found")),
}
FIRST = ("exact", "within_one", "mae", "bias", "cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic")
