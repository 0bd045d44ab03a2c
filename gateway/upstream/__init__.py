"""The OpenAI-compatible upstream: one wire format, an async client (aiohttp) and a sync one (httpx), retries, breakers."""
