from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):
    dependencies = [
        ("evaluation", "0031_requests_that_are_repeated"),
    ]

    operations = [
        migrations.AlterField(
            model_name="judgecheck",
            name="reason",
            field=models.TextField(blank=True, verbose_name="reason"),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
