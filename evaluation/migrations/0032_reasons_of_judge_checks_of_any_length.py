from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):
    dependencies = [
        ("evaluation", "0001_squashed_0031_all_tables_of_the_machines_half"),
    ]

    operations = [
        migrations.AlterField(
            model_name="judgecheck",
            name="reason",
            field=models.TextField(blank=True, verbose_name="reason"),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
