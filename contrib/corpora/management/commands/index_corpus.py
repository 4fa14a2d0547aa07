"""Make the vectors of a corpus, so that it can be searched by them."""

from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from contrib.corpora.retrieving import embed
from contrib.corpora.selectors import corpus_named
from evaluation.core.errors import Refused
from evaluation.judges.embeddings import chosen_embedding
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import refusals
from evaluation.runs.selectors import project_named


class Command(SiteCommand):
    """``index_corpus NAME``: exit 0 when every chunk has its vector, 1 when some could not be made; those that were
    are kept, and the next call goes on there."""

    help = "Embed the chunks of a corpus by an endpoint or the local model, for searches by vectors."

    def add_arguments(self, parser: CommandParser) -> None:
        """The corpus and what embeds it."""
        parser.add_argument("corpus", metavar="NAME[@VERSION]")
        parser.add_argument("--embeddings", default="local", metavar="ENDPOINT", help="the endpoint's name, or local")
        parser.add_argument("--project", default="", help="needed where there are several projects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Embed what is missing."""
        console = Console(stderr=True)
        with refusals(self), Progress(console=console, disable=not console.is_terminal) as bar:
            corpus = corpus_named(project_named(options["project"]), options["corpus"])
            choice = chosen_embedding(None, options["embeddings"])
            if choice is None:
                raise Refused("no_local_model")
            task = bar.add_task(str(corpus), total=None)
            made = embed(corpus, choice, lambda done, of: bar.update(task, completed=done, total=of))
        self.stdout.write(f"{corpus}: {made}")
