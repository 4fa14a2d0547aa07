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
                name='Corpus',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='created by')),
                    ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='corpora', to='evaluation.project', verbose_name='project')),
                    ('name', models.CharField(max_length=200, verbose_name='name')),
                    ('version', models.PositiveIntegerField(verbose_name='version')),
                    ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                    ('predecessor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='successors', to='corpora.corpus', verbose_name='previous version')),
                    ('splitting', models.JSONField(default=dict, verbose_name='splitting')),
                    ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ],
                options={
                    'verbose_name': 'corpus',
                    'verbose_name_plural': 'corpora',
                    'indexes': [models.Index(fields=['project', 'name', 'content_hash'], name='corpus_by_content')],
                    'constraints': [models.UniqueConstraint(fields=('project', 'name', 'version'), name='one_corpus_per_version')],
                },
            ),
            migrations.CreateModel(
                name='Document',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='documents', to='corpora.corpus', verbose_name='corpus')),
                    ('external_id', models.CharField(max_length=200, verbose_name='id')),
                    ('position', models.PositiveIntegerField(verbose_name='position')),
                    ('title', models.CharField(blank=True, max_length=300, verbose_name='title')),
                    ('media', models.CharField(max_length=20, verbose_name='kind')),
                    ('text', models.TextField(verbose_name='text')),
                    ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                    ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ],
                options={
                    'verbose_name': 'document',
                    'verbose_name_plural': 'documents',
                    'ordering': ['corpus', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('corpus', 'external_id'), name='one_document_per_id')],
                    'indexes': [],
                },
            ),
            migrations.CreateModel(
                name='Chunk',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                    ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='corpora.corpus', verbose_name='corpus')),
                    ('document', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='corpora.document', verbose_name='document')),
                    ('position', models.PositiveIntegerField(verbose_name='position')),
                    ('chunk_id', models.CharField(max_length=200, verbose_name='id')),
                    ('start', models.PositiveIntegerField(verbose_name='start')),
                    ('end', models.PositiveIntegerField(verbose_name='end')),
                    ('text', models.TextField(verbose_name='text')),
                    ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                ],
                options={
                    'verbose_name': 'chunk',
                    'verbose_name_plural': 'chunks',
                    'ordering': ['corpus', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('corpus', 'chunk_id'), name='one_chunk_per_id'), models.UniqueConstraint(fields=('corpus', 'position'), name='one_chunk_per_position'), models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='chunk_holds_text')],
                    'indexes': [],
                },
            ),
        ]),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
