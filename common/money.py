"""Money is integer nano-USD (1 USD = 10^9) everywhere; only display converts it.

A provider's price list gives USD per million tokens. ``Price`` keeps nano-USD per million tokens, which is exact for
every published price; a call's cost is rounded half up once, per call, and from there on only integers are added.
"""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

NUSD_PER_USD = 1_000_000_000
TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """A model's token price, in nano-USD per million tokens."""

    input_nusd: int
    output_nusd: int

    def cost_nusd(self, input_tokens: int, output_tokens: int) -> int:
        """Return the cost of one call in nano-USD, rounded half up."""
        total = input_tokens * self.input_nusd + output_tokens * self.output_nusd
        return (total + TOKENS_PER_PRICE // 2) // TOKENS_PER_PRICE


def usd_to_nusd(text: str) -> int:
    """Parse a non-negative decimal amount of USD into nano-USD, exactly.

    Raises ``ValueError`` for anything that is not a finite, non-negative number with at most nine decimals.
    """
    try:
        amount = Decimal(text.strip())
    except InvalidOperation as error:
        raise ValueError("not a decimal number of USD") from error
    if not amount.is_finite() or amount < 0 or amount > 10**9:
        raise ValueError("must be between 0 and 1,000,000,000 USD")
    nano = amount * NUSD_PER_USD
    if nano != nano.to_integral_value():
        raise ValueError("has more than nine decimals")
    return int(nano)


def format_usd(nusd: int, places: int = 4) -> str:
    """Format nano-USD for people, e.g. ``$1.0930``; for display only, never parsed back."""
    sign = "-" if nusd < 0 else ""
    return f"{sign}${Decimal(abs(nusd)) / NUSD_PER_USD:,.{places}f}"
