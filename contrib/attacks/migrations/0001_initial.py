import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evaluation.storage import append_only
from evaluation.storage.tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('evaluation', '0001_initial'),
    ]

    operations = [
        CreateTables([
            migrations.CreateModel(
                name='JudgeCheck',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='checks', to='evaluation.judgeversion', verbose_name='judge')),
                    ('rubric_hash', models.CharField(max_length=64, verbose_name='rubric hash')),
                    ('attacks_hash', models.CharField(max_length=64, verbose_name='attack set hash')),
                    ('response_format', models.CharField(blank=True, max_length=20, verbose_name='response format')),
                    ('model_returned', models.CharField(blank=True, max_length=200, verbose_name='served model')),
                    ('reason', models.TextField(blank=True, verbose_name='reason')),
                    ('attacks', models.PositiveIntegerField(default=0, verbose_name='attacks')),
                    ('passed', models.PositiveIntegerField(default=0, verbose_name='passed')),
                    ('calls', models.PositiveIntegerField(default=0, verbose_name='calls')),
                    ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True, verbose_name='cost')),
                ],
                options={
                    'verbose_name': 'judge check',
                    'verbose_name_plural': 'judge checks',
                    'ordering': ['judge_version', '-id'],
                    'constraints': [models.CheckConstraint(condition=models.Q(('passed__lte', models.F('attacks'))), name='no_more_passed_than_faced')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='AttackResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('check_of', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='results', to='attacks.judgecheck')),
                    ('attack', models.CharField(max_length=60)),
                    ('kind', models.CharField(max_length=20)),
                    ('language', models.CharField(max_length=5)),
                    ('passed', models.BooleanField()),
                    ('gate', models.CharField(blank=True, max_length=20)),
                    ('reason', models.CharField(blank=True, max_length=100)),
                    ('values', models.JSONField(default=dict)),
                    ('broken', models.JSONField(default=list)),
                    ('raw', models.TextField(blank=True)),
                ],
                options={
                    'ordering': ['check_of', 'id'],
                    'constraints': [models.UniqueConstraint(fields=('check_of', 'language', 'attack'), name='one_result_per_attack')],
                    'indexes': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
