"""Find the items of a queue that are kept for somebody."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("review", "0007_practice_progress")]

    operations = [
        migrations.AddIndex(
            model_name="reviewitem",
            index=models.Index(fields=["queue", "occasion", "reserved"], name="items_set_apart"),
        ),
    ]
