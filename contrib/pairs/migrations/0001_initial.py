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
                name='PairSet',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pair_sets', to='evaluation.project', verbose_name='project')),
                    ('name', models.CharField(max_length=200, verbose_name='name')),
                    ('guideline', models.TextField(blank=True, verbose_name='guideline')),
                    ('run_a', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.run', verbose_name='run A')),
                    ('run_b', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.run', verbose_name='run B')),
                    ('seed', models.PositiveBigIntegerField(default=0, verbose_name='seed')),
                    ('closed_at', models.DateTimeField(blank=True, null=True, verbose_name='closed')),
                ],
                options={
                    'verbose_name': 'pair set',
                    'verbose_name_plural': 'pair sets',
                    'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='one_pair_set_per_name')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PairMember',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('pair_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='pairs.pairset')),
                    ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('pair_set', 'reviewer'), name='one_pair_membership')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='Pair',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('pair_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pairs', to='pairs.pairset')),
                    ('external_id', models.CharField(max_length=300)),
                    ('position', models.PositiveIntegerField()),
                    ('question', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.question')),
                    ('answer_a', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.answer')),
                    ('answer_b', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.answer')),
                    ('question_text', models.TextField()),
                    ('reference', models.TextField(blank=True)),
                    ('system_a', models.CharField(blank=True, max_length=200)),
                    ('system_b', models.CharField(blank=True, max_length=200)),
                    ('text_a', models.TextField(blank=True)),
                    ('text_b', models.TextField(blank=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('pair_set', 'external_id'), name='one_pair_per_id')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='Preference',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('pair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preferences', to='pairs.pair')),
                    ('metric', models.CharField(default='preference', max_length=100)),
                    ('rater', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('judge_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.judgeversion')),
                    ('rubric_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.rubricversion')),
                    ('author', models.CharField(blank=True, max_length=200)),
                    ('by_judge', models.BooleanField(default=False)),
                    ('value', models.FloatField(null=True)),
                    ('failure', models.TextField(blank=True)),
                    ('reason', models.TextField(blank=True)),
                    ('swapped', models.BooleanField(default=False)),
                    ('seconds', models.FloatField(null=True)),
                    ('detail', models.JSONField(default=dict)),
                    ('origin', models.CharField(max_length=64)),
                    ('round', models.PositiveIntegerField(default=0)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('origin', 'round'), name='one_preference_per_round'), models.CheckConstraint(condition=models.Q(models.Q(('failure', ''), ('value__gte', -2), ('value__lte', 2)), models.Q(('value__isnull', True), models.Q(('failure', ''), _negated=True)), _connector='OR'), name='preference_or_failure')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PairJudging',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('pair_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgings', to='pairs.pairset')),
                    ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.judgeversion')),
                    ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.rubricversion')),
                    ('lease_token', models.UUIDField(null=True)),
                    ('lease_until', models.DateTimeField(null=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('pair_set', 'judge_version', 'rubric_version'), name='one_judging_per_set')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PairPreflight',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('outcome', models.CharField(max_length=30, verbose_name='outcome')),
                    ('response_format', models.CharField(blank=True, max_length=20, verbose_name='response format')),
                    ('judge_hash', models.CharField(blank=True, max_length=64, verbose_name='pinned judge hash')),
                    ('model_returned', models.CharField(blank=True, max_length=200, verbose_name='served model')),
                    ('fingerprint', models.CharField(blank=True, max_length=200, verbose_name='fingerprint')),
                    ('usage', models.BooleanField(null=True, verbose_name='returns token counts')),
                    ('logprobs', models.BooleanField(null=True, verbose_name='returns log probabilities')),
                    ('calls', models.PositiveIntegerField(default=0, verbose_name='calls')),
                    ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True, verbose_name='cost')),
                    ('retry_at', models.DateTimeField(null=True, verbose_name='retry after')),
                    ('detail', models.JSONField(blank=True, default=list)),
                    ('judging', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='preflights', to='pairs.pairjudging')),
                    ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.judgeversion')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('outcome', 'ok')), fields=('judging',), name='one_pin_per_judging'), models.CheckConstraint(condition=models.Q(models.Q(('outcome', 'ok'), _negated=True), models.Q(models.Q(('response_format', ''), _negated=True), models.Q(('judge_hash', ''), _negated=True)), _connector='OR'), name='pinned_pairs_have_a_response_format')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PairAttempt',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('judging', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='pairs.pairjudging')),
                    ('pair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='pairs.pair')),
                    ('round', models.PositiveIntegerField()),
                    ('number', models.PositiveIntegerField()),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('judging', 'pair', 'round', 'number'), name='one_attempt_per_pair_call')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PairReply',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('outcome', models.CharField(max_length=30)),
                    ('http_status', models.PositiveIntegerField(null=True)),
                    ('model_returned', models.CharField(blank=True, max_length=200)),
                    ('request_hash', models.CharField(blank=True, db_index=True, max_length=64)),
                    ('tokens_in', models.PositiveBigIntegerField(null=True)),
                    ('tokens_out', models.PositiveBigIntegerField(null=True)),
                    ('tokens_cached', models.PositiveBigIntegerField(null=True)),
                    ('tokens_reasoning', models.PositiveBigIntegerField(null=True)),
                    ('cost', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                    ('saved', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                    ('elapsed_seconds', models.FloatField(null=True)),
                    ('raw', models.TextField(blank=True)),
                    ('chances', models.JSONField(null=True)),
                    ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='reply', to='pairs.pairattempt')),
                ],
                options={
                    'verbose_name_plural': 'pair replies',
                    'indexes': [],
                    'constraints': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
