"""The profile of a project's runs for which none is chosen."""

from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0033_openings_of_hold_outs")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="default_profile",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Profile of runs for which none is chosen: its formula makes the overall score. "
                "Empty: standard.",
                max_length=100,
                verbose_name="default profile",
            ),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
