"""An assignment says its queue: filled from its item, and by it a person's own part of a queue is found."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import deletion

from evaluation.storage import append_only


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    item = "SELECT i.queue_id FROM review_reviewitem i WHERE i.id = review_assignment.item_id"
    schema_editor.execute(f"UPDATE review_assignment SET queue_id = ({item})")
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # a table with checks to come cannot be altered


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0011_last_rated_of_reviewer"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(model_name="assignment", name="assignments_of_reviewer"),
        migrations.RemoveIndex(model_name="assignment", name="last_rated_of_reviewer"),
        migrations.AddField(
            model_name="assignment",
            name="queue",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=deletion.PROTECT,
                related_name="assignments",
                to="review.reviewqueue",
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="assignment",
            name="queue",
            field=models.ForeignKey(
                db_index=False, on_delete=deletion.PROTECT, related_name="assignments", to="review.reviewqueue"
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["reviewer", "queue", "state"], name="own_in_queue_by_state"),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["reviewer", "queue", "submitted_at"], name="own_in_queue_by_time"),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
