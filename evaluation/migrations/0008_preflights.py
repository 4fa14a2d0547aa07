
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

from evaluation import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0007_stored_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='Preflight',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('outcome', models.CharField(max_length=30, verbose_name='outcome')),
                ('rung', models.CharField(blank=True, max_length=20, verbose_name='way of asking')),
                ('judge_hash', models.CharField(blank=True, max_length=64, verbose_name='hash of the judge as pinned')),
                ('model_returned', models.CharField(blank=True, max_length=200, verbose_name='model that answered')),
                ('fingerprint', models.CharField(blank=True, max_length=200, verbose_name='fingerprint')),
                ('usage', models.BooleanField(null=True, verbose_name='tells tokens')),
                ('logprobs', models.BooleanField(null=True, verbose_name='tells log probabilities')),
                ('calls', models.PositiveIntegerField(default=0, verbose_name='calls')),
                ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True, verbose_name='cost')),
                ('retry_at', models.DateTimeField(null=True, verbose_name='not before')),
                ('detail', models.JSONField(blank=True, default=list)),
                ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preflights', to='evaluation.judgeversion')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preflights', to='evaluation.run')),
            ],
            options={
                'verbose_name': 'preflight',
                'verbose_name_plural': 'preflights',
                'constraints': [models.UniqueConstraint(condition=models.Q(('outcome', 'ok')), fields=('run', 'judge_version'), name='one_pinned_judge_per_run'), models.CheckConstraint(condition=models.Q(models.Q(('outcome', 'ok'), _negated=True), models.Q(models.Q(('rung', ''), _negated=True), models.Q(('judge_hash', ''), _negated=True)), _connector='OR'), name='pinned_has_a_rung')],
            },
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
