"""The OpenAI-compatible upstream: one wire format, retries and breakers, an async client and a sync one.

An ``Endpoint`` puts them together; the teacher is one, and a student's replicas are one each.
"""
