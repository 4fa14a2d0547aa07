"""The start page: what needs me now, then the newest runs."""

from __future__ import annotations

from dataclasses import dataclass

from review.comparisons.attention import Attention
from review.web.pages.run_list import RunRows


@dataclass(frozen=True, slots=True)
class HomePage:
    """The start page. ``runs`` is ``None`` for people who see no runs; ``empty`` where the projects hold nothing yet,
    ``member`` whether the person has any role at all, ``evaluates`` whether the commands concern them, ``fresh`` where
    there is no project to bring anything into."""

    needs: Attention
    runs: RunRows | None
    member: bool
    evaluates: bool
    fresh: bool

    @property
    def empty(self) -> bool:
        """Whether there is neither a run nor anything to do."""
        return not (self.busy or (self.runs and self.runs.rows))

    @property
    def busy(self) -> bool:
        """Whether anything needs the person now."""
        needs = self.needs
        return bool(needs.queues or needs.others or needs.disputed or needs.drafts or needs.incomplete)
