"""Of a metric that no judge of a run scores, the first imported judge counts; also where it was imported earlier."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models
from django.db.models import Min

from evaluation.storage import append_only

KINDS = ("judge", "custom", "imported")


def let_first_count(apps, schema_editor):
    scores = apps.get_model("evaluation", "Score").objects
    imported = scores.filter(metric__kind__in=KINDS).exclude(author="")
    columns = ("run_id", "metric__name", "metric__rubric_family", "metric_id", "author")
    came = imported.values_list(*columns).annotate(first=Min("id")).order_by("first")
    judges = apps.get_model("evaluation", "RunJudge").objects.filter(primary=True)
    asked = set(judges.values_list("run_id", "rubric_version__family"))
    counts = {}
    for run, name, family, metric, author, _ in came:
        own = (run, family) in asked or scores.filter(run=run, author="", metric__name=name).exists()
        if (run, name) not in counts and not own:
            counts[run, name] = metric, author
    rows = apps.get_model("evaluation", "ImportedJudge")
    rows.objects.bulk_create(
        rows(run_id=run, metric_id=metric, author=author) for (run, _), (metric, author) in counts.items()
    )


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0024_restarts_and_trials'),
    ]

    operations = [
        migrations.CreateModel(
            name='ImportedJudge',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('author', models.CharField(max_length=200)),
                ('metric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.metricdefinition')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='imported_judges', to='evaluation.run')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'metric'), name='one_imported_judge_per_metric')],
            },
        ),
        migrations.RunPython(let_first_count, migrations.RunPython.noop),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
