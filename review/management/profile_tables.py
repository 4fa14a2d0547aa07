"""What a profile itself says of a run, as tables of a command: who passes and why not, bands, diagnosis, classes,
abstaining. The same card as on the run's page."""

from collections.abc import Iterator

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evaluation.core.metric_specs import Bilingual
from review.management.sheets import NOTHING, Sheet, number
from review.reports.category_cards import PassingView, ProfileCard, profile_card
from review.reports.profile_section import ClassTable
from review.reports.report import Report


def profile_sheets(report: Report) -> Iterator[Sheet]:
    """A table for each kind of answer that the profile gives; none where it gives only figures."""
    card = profile_card(report)
    if card.passing:
        yield _passing(card.passing)
    yield from _bands(card)
    yield from _diagnoses(card)
    for title, table in card.classes:
        yield _classes(title, table)
    if told := card.section.abstention:
        rows = (
            (_("has an answer"), str(told.answerable_answered), str(told.answerable_abstained)),
            (
                _("has none: abstaining is right"),
                *(str(told.unanswerable_answered), str(told.unanswerable_abstained)),
            ),
        )
        yield Sheet(_("Answering and abstaining"), (_("Question"), _("answered"), _("abstained")), rows)


def _said(text: Bilingual) -> str:
    return text.in_language(get_language() or "en")


def _share(share: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """A share and its 95% interval in per cent."""
    if share is None or low is None or high is None:
        return NOTHING, NOTHING
    return f"{share:.0%}", f"{low:.0%} – {high:.0%}"


def _passing(view: PassingView) -> Sheet:
    rate = view.rate
    rows = [
        (_("pass"), str(rate.passed), *_share(rate.rate, rate.low, rate.high)),
        (_("fail"), str(rate.failed), NOTHING, NOTHING),
        *((reason, str(count), NOTHING, NOTHING) for reason, count in view.reasons),
    ]
    if rate.unknown:
        rows.append((_("unknown"), str(rate.unknown), NOTHING, NOTHING))
    return Sheet(_("Answers that pass"), ("", _("answers"), _("share"), _("95% interval")), rows)


def _bands(card: ProfileCard) -> Iterator[Sheet]:
    for title, found, counts in card.bands:
        band = _said(found.band.title.bilingual) if found.band else NOTHING
        rows = [(_said(one.title.bilingual), str(count)) for one, count in counts]
        yield Sheet(f"{title}: {number(found.value)} · {band}", (_("band"), _("answers")), rows)


def _diagnoses(card: ProfileCard) -> Iterator[Sheet]:
    for found, cells in card.diagnoses:
        rows = [
            (
                " · ".join((_said(one.cell.title.bilingual), *([_("this run")] if one.run else []))),
                str(one.answers),
                _said(one.cell.text.bilingual),
            )
            for one in cells
        ]
        if found.unknown:
            rows.append((_("unknown"), str(found.unknown), NOTHING))
        header = (_("Pattern"), _("answers"), _("What it means"))
        yield Sheet(_said(found.table.title.bilingual), header, rows, numbers_from=3)


def _classes(title: str, table: ClassTable) -> Sheet:
    rows = ((one.label, str(one.count), *_share(one.share, one.low, one.high)) for one in table.total)
    return Sheet(title, (_("class"), _("answers"), _("share"), _("95% interval")), rows)
