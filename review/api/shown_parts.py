"""What the review endpoints answer about parts of an answer: claims, nuggets, passages and the verdicts on them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class VerdictShown(serializers.Serializer[Any]):
    """A verdict one may choose, and when it is right."""

    name = serializers.CharField()
    text = serializers.CharField()


class OfferedPartShown(serializers.Serializer[Any]):
    """A part to be decided. ``context`` is the position of its passage, from 0."""

    number = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    context = serializers.IntegerField(allow_null=True)  # type: ignore[assignment]  # a field, not the serializer's own


class PartGivenShown(serializers.Serializer[Any]):
    """A verdict that was given; ``number`` is 0 for a part that was added."""

    number = serializers.IntegerField()
    text = serializers.CharField()
    verdict = serializers.CharField()


class JudgeOnClaimShown(serializers.Serializer[Any]):
    """What the judge said of a claim, with the number of the passage it rests on and the words there."""

    verdict = serializers.CharField()
    reason = serializers.CharField()
    passage = serializers.IntegerField(allow_null=True)
    quote = serializers.CharField()
    quote_start = serializers.IntegerField(allow_null=True)
    quote_end = serializers.IntegerField(allow_null=True)
    approximate = serializers.BooleanField()


class ClaimShown(serializers.Serializer[Any]):
    """A claim of the answer with its place; ``judge`` is null while hidden."""

    number = serializers.IntegerField()
    text = serializers.CharField()
    start = serializers.IntegerField(allow_null=True)
    end = serializers.IntegerField(allow_null=True)
    approximate = serializers.BooleanField()
    judge = JudgeOnClaimShown(allow_null=True)


class PartRatedShown(serializers.Serializer[Any]):
    """A part behind a rating with the expert's verdict."""

    position = serializers.IntegerField()
    kind = serializers.CharField()
    text = serializers.CharField()
    verdict = serializers.CharField()
    context = serializers.IntegerField(allow_null=True)  # type: ignore[assignment]  # a field, not the serializer's own
    added = serializers.BooleanField()
