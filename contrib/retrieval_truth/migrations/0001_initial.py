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
                name='RetrievalRepair',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='retrieval_repairs', to='evaluation.project')),
                    ('question_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.questionset')),
                    ('name', models.CharField(max_length=200, verbose_name='name')),
                    ('guideline', models.TextField(blank=True, verbose_name='guideline')),
                    ('k', models.PositiveIntegerField()),
                    ('partly_counts', models.BooleanField(default=False)),
                    ('first_relevant', models.BooleanField(default=False)),
                    ('size', models.PositiveIntegerField()),
                    ('seed', models.PositiveBigIntegerField()),
                    ('closed_at', models.DateTimeField(null=True)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='one_repair_per_name'), models.CheckConstraint(condition=models.Q(('k__gte', 1), ('k__lte', 50)), name='depth_of_repair_in_range')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='RepairSystem',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('repair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='systems', to='retrieval_truth.retrievalrepair')),
                    ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.run')),
                    ('position', models.PositiveIntegerField()),
                    ('name', models.CharField(max_length=300)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('repair', 'position'), name='one_system_per_place')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='RepairMember',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('repair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='retrieval_truth.retrievalrepair')),
                    ('reviewer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('repair', 'reviewer'), name='one_repair_membership')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PooledPassage',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('repair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='passages', to='retrieval_truth.retrievalrepair')),
                    ('question', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.question')),
                    ('chunk_id', models.CharField(blank=True, max_length=300)),
                    ('text_hash', models.CharField(blank=True, max_length=64)),
                    ('text', models.TextField(blank=True)),
                    ('ranks', models.JSONField()),
                    ('label', models.FloatField(null=True)),
                    ('judge', models.FloatField(null=True)),
                    ('guess', models.FloatField()),
                    ('stratum', models.CharField(choices=[('labelled', 'labelled'), ('certain', 'sampled with certainty'), ('drawn', 'sampled with a probability below 1')], max_length=10)),
                    ('probability', models.FloatField()),
                    ('sampled', models.BooleanField()),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('repair', 'question', 'chunk_id', 'text_hash'), name='one_passage_per_question'), models.CheckConstraint(condition=models.Q(models.Q(('label__isnull', False), ('sampled', False), ('stratum', 'labelled')), models.Q(('label__isnull', True), ('probability__gt', 0), ('probability__lte', 1)), _connector='OR'), name='unlabelled_has_a_probability')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='PassageRating',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('passage', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='ratings', to='retrieval_truth.pooledpassage')),
                    ('rater', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('grade', models.CharField(choices=[('relevant', 'Relevant'), ('partly', 'Partly relevant'), ('not', 'Not relevant'), ('cannot', 'Cannot judge')], max_length=10)),
                    ('reason', models.TextField(blank=True)),
                    ('seconds', models.FloatField(null=True)),
                    ('round', models.PositiveIntegerField(default=0)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('passage', 'rater', 'round'), name='one_passage_rating_per_round'), models.CheckConstraint(condition=models.Q(('grade__in', ['relevant', 'partly', 'not', 'cannot'])), name='grade_of_a_passage')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='AcceptedLabels',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('repair', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='accepted', to='retrieval_truth.retrievalrepair')),
                    ('question_set', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='evaluation.questionset')),
                    ('relevant', models.PositiveIntegerField()),
                    ('unrated', models.PositiveIntegerField()),
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
