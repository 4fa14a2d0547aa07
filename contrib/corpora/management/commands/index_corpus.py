"""Compute the vectors of a corpus for vector search."""

from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from contrib.corpora.corpus_search import embed_corpus
from contrib.corpora.selectors import get_corpus
from evaluation.core.errors import DomainError
from evaluation.judges.embeddings import choose_embedding
from evaluation.management.output import command_errors
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project


class Command(SiteCommand):
    """``index_corpus NAME``: exit 0 if every chunk has its vector, else 1; finished vectors are stored and the next
    call continues."""

    help = "Embed the chunks of a corpus with an endpoint or the local model, for vector search."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("corpus", metavar="NAME[@VERSION]")
        parser.add_argument("--embeddings", default="local", metavar="ENDPOINT", help="name of the endpoint, or local")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        """Embed the chunks without a vector."""
        console = Console(stderr=True)
        with command_errors(self), Progress(console=console, disable=not console.is_terminal) as bar:
            corpus = get_corpus(get_project(options["project"]), options["corpus"])
            choice = choose_embedding(None, options["embeddings"])
            if choice is None:
                raise DomainError("no_local_model")
            task = bar.add_task(str(corpus), total=None)
            count = embed_corpus(corpus, choice, lambda done, of: bar.update(task, completed=done, total=of))
        self.stdout.write(f"{corpus}: {count}")
