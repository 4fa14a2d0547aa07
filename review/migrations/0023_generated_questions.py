"""Question sets that a model writes, with their calls, questions and decisions."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0029_corpora'),
        ('review', '0022_retrieval_repairs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Generation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('language', models.CharField(choices=[('ko', 'Korean'), ('en', 'English')], max_length=5, verbose_name='language')),
                ('kinds', models.JSONField(verbose_name='kinds of questions')),
                ('passages', models.PositiveIntegerField(verbose_name='passages')),
                ('per_passage', models.PositiveIntegerField(verbose_name='questions a passage')),
                ('seed', models.PositiveBigIntegerField(verbose_name='seed')),
                ('budget', models.DecimalField(decimal_places=4, max_digits=12, null=True, verbose_name='budget')),
                ('writer', models.CharField(max_length=64, verbose_name='generator version')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='generations', to='evaluation.corpus', verbose_name='corpus')),
                ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('judge_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.judgeversion', verbose_name='written by')),
            ],
            options={
                'verbose_name': 'generated question set',
                'verbose_name_plural': 'generated question sets',
            },
        ),
        migrations.CreateModel(
            name='DraftQuestion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('position', models.PositiveIntegerField()),
                ('kind', models.CharField(max_length=20, verbose_name='kind')),
                ('content', models.JSONField()),
                ('removed_by', models.CharField(blank=True, choices=[('no_question', 'is not a question with an answer'), ('leaked', 'gives its answer or its passage away'), ('duplicate', 'asks what another one asks'), ('trivial', 'its words alone find the passage'), ('not_answerable', 'its passages do not answer it'), ('elsewhere', 'another passage answers it as well, or one of several is enough'), ('known', 'the model knows the answer without the passage'), ('unchecked', 'could not be checked')], default='', max_length=16, verbose_name='filtered out')),
                ('detail', models.JSONField(default=dict)),
                ('generation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='drafts', to='review.generation')),
            ],
            options={
                'verbose_name': 'generated question',
                'verbose_name_plural': 'generated questions',
                'ordering': ['generation', 'position'],
            },
        ),
        migrations.CreateModel(
            name='GenerationCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('step', models.CharField(max_length=40)),
                ('generation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='review.generation')),
            ],
            options={
                'abstract': False,
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
                ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='reply', to='review.generationcall')),
            ],
            options={
                'verbose_name_plural': 'replies to generations',
            },
        ),
        migrations.CreateModel(
            name='GenerationResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('outcome', models.CharField(choices=[('done', 'written and checked'), ('budget', 'the budget is used up')], max_length=8)),
                ('figures', models.JSONField(default=dict)),
                ('generation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='result', to='review.generation')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='GenerationTurn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('token', models.UUIDField(null=True)),
                ('until', models.DateTimeField(null=True)),
                ('reason', models.CharField(blank=True, default='', max_length=100)),
                ('rung', models.CharField(blank=True, default='', max_length=20)),
                ('generation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='turn', to='review.generation')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='DraftDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('seq', models.PositiveIntegerField()),
                ('verb', models.CharField(choices=[('accepted', 'accepted'), ('rejected', 'rejected')], max_length=10)),
                ('content', models.JSONField(null=True)),
                ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('draft', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='review.draftquestion')),
            ],
            options={
                'verbose_name': 'decision on a generated question',
                'verbose_name_plural': 'decisions on generated questions',
                'ordering': ['draft', 'seq'],
                'constraints': [models.UniqueConstraint(fields=('draft', 'seq'), name='one_decision_per_turn'), models.CheckConstraint(condition=models.Q(('content', None), ('verb', 'accepted'), _connector='OR'), name='what_is_edited_is_accepted')],
            },
        ),
        migrations.AddConstraint(
            model_name='generation',
            constraint=models.CheckConstraint(condition=models.Q(('passages__gte', 1), ('passages__lte', 1000)), name='passages_of_generation'),
        ),
        migrations.AddConstraint(
            model_name='generation',
            constraint=models.CheckConstraint(condition=models.Q(('per_passage__gte', 1), ('per_passage__lte', 10)), name='questions_a_passage'),
        ),
        migrations.AddConstraint(
            model_name='generation',
            constraint=models.CheckConstraint(condition=models.Q(('budget', None), ('budget__gt', 0), _connector='OR'), name='budget_of_generation'),
        ),
        migrations.AddConstraint(
            model_name='draftquestion',
            constraint=models.UniqueConstraint(fields=('generation', 'position'), name='one_draft_per_position'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
