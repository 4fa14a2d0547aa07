"""OpenTelemetry traces as questions and answers: of a file, or sent by OTLP and waiting for their import.

``otlp`` reads traces, ``importing`` samples, masks and stores them.
"""
