import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evaluation.storage import append_only
from evaluation.storage.tables import CreateTables


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('corpora', '0001_initial'),
        ('evaluation', '0001_initial'),
    ]

    operations = [
        CreateTables([
            migrations.CreateModel(
                name='Generation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='generations', to='corpora.corpus', verbose_name='corpus')),
                    ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.judgeversion', verbose_name='written by')),
                    ('name', models.CharField(max_length=200, verbose_name='name')),
                    ('language', models.CharField(choices=[('ko', 'Korean'), ('en', 'English')], max_length=5, verbose_name='language')),
                    ('kinds', models.JSONField(verbose_name='question types')),
                    ('passages', models.PositiveIntegerField(verbose_name='passages')),
                    ('per_passage', models.PositiveIntegerField(verbose_name='questions per passage')),
                    ('seed', models.PositiveBigIntegerField(verbose_name='seed')),
                    ('budget', models.DecimalField(decimal_places=4, max_digits=12, null=True, verbose_name='budget')),
                    ('writer', models.CharField(max_length=64, verbose_name='generator version')),
                ],
                options={
                    'verbose_name': 'generated question set',
                    'verbose_name_plural': 'generated question sets',
                    'constraints': [models.CheckConstraint(condition=models.Q(('passages__gte', 1), ('passages__lte', 1000)), name='passages_of_generation'), models.CheckConstraint(condition=models.Q(('per_passage__gte', 1), ('per_passage__lte', 10)), name='questions_a_passage'), models.CheckConstraint(condition=models.Q(('budget', None), ('budget__gt', 0), _connector='OR'), name='budget_of_generation')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='GenerationCall',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('generation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='generation.generation')),
                    ('step', models.CharField(max_length=40)),
                ],
                options={
                    'abstract': False,
                    'indexes': [],
                    'constraints': [],
                },
            ),
            migrations.CreateModel(
                name='GenerationReply',
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
                    ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='reply', to='generation.generationcall')),
                ],
                options={
                    'verbose_name_plural': 'replies to generations',
                    'indexes': [],
                    'constraints': [],
                },
            ),
            migrations.CreateModel(
                name='DraftQuestion',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('generation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='generation.generation')),
                    ('position', models.PositiveIntegerField()),
                    ('kind', models.CharField(max_length=20, verbose_name='kind')),
                    ('content', models.JSONField()),
                    ('removed_by', models.CharField(blank=True, choices=[('no_question', 'not a question with an answer'), ('leaked', 'reveals its answer or passage'), ('duplicate', 'duplicates another question'), ('trivial', 'passage found by question words only'), ('not_answerable', 'not answerable from its passages'), ('elsewhere', 'also answered by another passage, or by just one of several'), ('known', 'the model knows the answer without the passage'), ('unchecked', 'could not be checked')], default='', max_length=16, verbose_name='filtered out')),
                    ('detail', models.JSONField(default=dict)),
                ],
                options={
                    'verbose_name': 'generated question',
                    'verbose_name_plural': 'generated questions',
                    'ordering': ['generation', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('generation', 'position'), name='one_draft_per_position')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='DraftDecision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('draft', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='generation.draftquestion')),
                    ('seq', models.PositiveIntegerField()),
                    ('verb', models.CharField(choices=[('accepted', 'accepted'), ('rejected', 'rejected')], max_length=10)),
                    ('content', models.JSONField(null=True)),
                ],
                options={
                    'verbose_name': 'decision on a generated question',
                    'verbose_name_plural': 'decisions on generated questions',
                    'ordering': ['draft', 'seq'],
                    'constraints': [models.UniqueConstraint(fields=('draft', 'seq'), name='one_decision_per_turn'), models.CheckConstraint(condition=models.Q(('content', None), ('verb', 'accepted'), _connector='OR'), name='what_is_edited_is_accepted')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='GenerationResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('generation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='result', to='generation.generation')),
                    ('outcome', models.CharField(choices=[('done', 'written and checked'), ('budget', 'budget used up')], max_length=8)),
                    ('figures', models.JSONField(default=dict)),
                ],
                options={
                    'abstract': False,
                    'indexes': [],
                    'constraints': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
