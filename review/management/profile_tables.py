"""Terminal tables of profile-specific results: pass rates, bands, diagnoses, classes and abstention."""

from collections.abc import Iterator

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evaluation.core.metric_specs import Bilingual
from review.management.sheets import DASH, Sheet, number
from review.reports.category_cards import PassingView, ProfileCard, profile_card
from review.reports.profile_section import ClassTable
from review.reports.report import Report


def profile_sheets(report: Report) -> Iterator[Sheet]:
    """Yield a table for each kind of profile result."""
    card = profile_card(report)
    if card.passing:
        yield _passing_sheet(card.passing)
    yield from _band_sheets(card)
    yield from _diagnosis_sheets(card)
    for title, table in card.classes:
        yield _class_sheet(title, table)
    if abstention := card.section.abstention:
        rows = (
            (_("answerable"), str(abstention.answerable_answered), str(abstention.answerable_abstained)),
            (
                _("unanswerable (should abstain)"),
                *(str(abstention.unanswerable_answered), str(abstention.unanswerable_abstained)),
            ),
        )
        yield Sheet(_("Answers and abstentions"), (_("Question"), _("answered"), _("abstained")), rows)


def _localized(text: Bilingual) -> str:
    return text.in_language(get_language() or "en")


def _share(share: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Format a share and its 95% interval as percentages."""
    if share is None or low is None or high is None:
        return DASH, DASH
    return f"{share:.0%}", f"{low:.0%} – {high:.0%}"


def _passing_sheet(view: PassingView) -> Sheet:
    rate = view.rate
    rows = [
        (_("pass"), str(rate.passed), *_share(rate.rate, rate.low, rate.high)),
        (_("fail"), str(rate.failed), DASH, DASH),
        *((reason, str(count), DASH, DASH) for reason, count in view.reasons),
    ]
    if rate.unknown:
        rows.append((_("unknown"), str(rate.unknown), DASH, DASH))
    return Sheet(_("Passing answers"), ("", _("answers"), _("share"), _("95% CI")), rows)


def _band_sheets(card: ProfileCard) -> Iterator[Sheet]:
    for title, banded_score, counts in card.bands:
        band = _localized(banded_score.band.title.bilingual) if banded_score.band else DASH
        rows = [(_localized(counted_band.title.bilingual), str(count)) for counted_band, count in counts]
        yield Sheet(f"{title}: {number(banded_score.value)} · {band}", (_("band"), _("answers")), rows)


def _diagnosis_sheets(card: ProfileCard) -> Iterator[Sheet]:
    for diagnosis, cells in card.diagnoses:
        rows = [
            (
                " · ".join((_localized(cell.cell.title.bilingual), *([_("this run")] if cell.run else []))),
                str(cell.answers),
                _localized(cell.cell.text.bilingual),
            )
            for cell in cells
        ]
        if diagnosis.unknown:
            rows.append((_("unknown"), str(diagnosis.unknown), DASH))
        header = (_("Pattern"), _("answers"), _("Meaning"))
        yield Sheet(_localized(diagnosis.table.title.bilingual), header, rows, numbers_from=3)


def _class_sheet(title: str, table: ClassTable) -> Sheet:
    rows = (
        (class_share.label, str(class_share.count), *_share(class_share.share, class_share.low, class_share.high))
        for class_share in table.total
    )
    return Sheet(title, (_("class"), _("answers"), _("share"), _("95% CI")), rows)
