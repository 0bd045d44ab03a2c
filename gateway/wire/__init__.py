"""The OpenAI chat wire format: requests in, completions, chunks and errors out. Pure; no HTTP, no Django.

``chat_request.parse_chat_request`` reads a body, ``envelope.chat_completion`` and ``envelope.sse_chunks`` write the
answer, ``errors.APIError`` is every refusal. To add a generation parameter: one check in ``parameters.CHECKS`` and,
for the student, its name in ``gateway.cascade.generation``.
"""
