"""The OpenAI wire, the cascade, upstream models, keys, observability. Serves; never decides a release."""
