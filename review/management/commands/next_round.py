"""Create the queue of the next planned round of a review."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from review.management.options import command_errors
from review.models import ReviewQueue
from review.queues.rounds import make_next_round


class Command(SiteCommand):
    """``next_round QUEUE``: prints ``queue ID``."""

    help = "Open the queue of the next planned round, with the settings and people of the latest one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("queue", type=int, help="any queue of the review")

    def handle(self, *args: Any, **options: Any) -> None:
        queue = ReviewQueue.objects.filter(pk=options["queue"]).first()
        if queue is None:
            raise CommandError(f"Queue {options['queue']} does not exist.", returncode=2)
        with command_errors():
            next_queue = make_next_round(queue, by=None)
        self.stdout.write(f"queue {next_queue.pk}")
