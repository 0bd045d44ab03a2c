"""The errors that services raise on purpose; edges turn them into messages, never into a 500."""


class RatchetError(Exception):
    """A refusal with a reason a person can act on. The text holds no secret and no request content."""


class ConfigurationError(RatchetError):
    """A setting is missing or wrong; the text names the variable and the remedy."""


class Refused(RatchetError):
    """The operation is not allowed in the current state (a stale page, an illegal move, a missing permission)."""
