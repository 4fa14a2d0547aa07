"""Corpora with their documents and chunks."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from evaluation.storage import append_only


class Migration(migrations.Migration):

    dependencies = [
        ('evaluation', '0028_endpoints_that_are_down'),
    ]

    operations = [
        migrations.CreateModel(
            name='Corpus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('name', models.CharField(max_length=200, verbose_name='name')),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                ('splitting', models.JSONField(default=dict, verbose_name='splitting')),
                ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ('created_by', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='made by')),
                ('predecessor', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='successors', to='evaluation.corpus', verbose_name='version before')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='corpora', to='evaluation.project', verbose_name='project')),
            ],
            options={
                'verbose_name': 'corpus',
                'verbose_name_plural': 'corpora',
            },
        ),
        migrations.CreateModel(
            name='Document',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('external_id', models.CharField(max_length=200, verbose_name='id')),
                ('position', models.PositiveIntegerField(verbose_name='position')),
                ('title', models.CharField(blank=True, max_length=300, verbose_name='title')),
                ('media', models.CharField(max_length=20, verbose_name='kind')),
                ('text', models.TextField(verbose_name='text')),
                ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='documents', to='evaluation.corpus', verbose_name='corpus')),
            ],
            options={
                'verbose_name': 'document',
                'verbose_name_plural': 'documents',
                'ordering': ['corpus', 'position'],
            },
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='created')),
                ('position', models.PositiveIntegerField(verbose_name='position')),
                ('chunk_id', models.CharField(max_length=200, verbose_name='id')),
                ('start', models.PositiveIntegerField(verbose_name='start')),
                ('end', models.PositiveIntegerField(verbose_name='end')),
                ('text', models.TextField(verbose_name='text')),
                ('content_hash', models.CharField(editable=False, max_length=64, verbose_name='content hash')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='evaluation.corpus', verbose_name='corpus')),
                ('document', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='chunks', to='evaluation.document', verbose_name='document')),
            ],
            options={
                'verbose_name': 'chunk',
                'verbose_name_plural': 'chunks',
                'ordering': ['corpus', 'position'],
            },
        ),
        migrations.AddIndex(
            model_name='corpus',
            index=models.Index(fields=['project', 'name', 'content_hash'], name='corpus_by_content'),
        ),
        migrations.AddConstraint(
            model_name='corpus',
            constraint=models.UniqueConstraint(fields=('project', 'name', 'version'), name='one_corpus_per_version'),
        ),
        migrations.AddConstraint(
            model_name='document',
            constraint=models.UniqueConstraint(fields=('corpus', 'external_id'), name='one_document_per_id'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.UniqueConstraint(fields=('corpus', 'chunk_id'), name='one_chunk_per_id'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.UniqueConstraint(fields=('corpus', 'position'), name='one_chunk_per_position'),
        ),
        migrations.AddConstraint(
            model_name='chunk',
            constraint=models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='chunk_holds_text'),
        ),
        migrations.RunPython(append_only.install, migrations.RunPython.noop),
    ]
