"""Find the scores of an answer in a run by all three columns at once."""

from django.db import migrations, models

from evaluation import append_only


class Migration(migrations.Migration):
    dependencies = [("evaluation", "0010_limits_of_endpoints")]

    operations = [
        migrations.RemoveIndex(model_name="score", name="scores_of_answer"),
        migrations.AddIndex(
            model_name="score",
            index=models.Index(fields=["answer", "run", "metric"], name="scores_of_answer_in_run"),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
