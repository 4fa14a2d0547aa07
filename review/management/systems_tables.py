"""Source 001's tables by system: how many answers have which class, and mean, lowest and highest score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from review.management.tables import Sheet
from review.reports.report import Report


def systems_sheets(reports: Sequence[Report]) -> Iterator[Sheet]:
    """One table per class metric, then the spread of the overall score; nothing where the profile has neither."""
    names = dict.fromkeys(table.name for report in reports for table in report.by_profile.classes)
    for name in names:
        yield _classes(name, reports)
    spread = [row for report in reports for row in _spread(report)]
    if spread:
        header = (_("run"), _("system"), _("category"), "n", _("mean"), _("lowest"), _("highest"))
        yield Sheet(_("Overall score by system and category"), header, spread, numbers_from=3)


def _classes(name: str, reports: Sequence[Report]) -> Sheet:
    tables = [(report, table) for report in reports for table in report.by_profile.classes if table.name == name]
    labels = list(dict.fromkeys(label for _report, table in tables for label in table.labels))
    rows = []
    for report, table in tables:
        shares = {one.label: one for one in table.total}
        cells = (
            f"{one.count} ({one.share:.0%}, {one.low:.0%} – {one.high:.0%})" if (one := shares.get(label)) else "0"
            for label in labels
        )
        rows.append((str(report.header.run_id), report.header.system, *cells))
    title = _("%(metric)s by system: answers, share, 95%% interval") % {"metric": name}
    return Sheet(title, (_("run"), _("system"), *labels), rows, numbers_from=2)


def _spread(report: Report) -> Iterator[tuple[str, ...]]:
    for one in report.by_profile.spread:
        figures = (f"{value:.3f}" for value in (one.mean, one.lowest, one.highest))
        name = one.category or _("all")
        yield (str(report.header.run_id), report.header.system, name, str(one.n), *figures)
