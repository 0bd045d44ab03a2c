"""The Wilson score interval (E. B. Wilson, "Probable inference", JASA 22, 1927)."""

from math import sqrt

Z_95 = 1.96


def wilson(successes: int, trials: int, z: float = Z_95) -> tuple[float, float]:
    """Return the (lower, upper) bounds of a proportion at ``z`` standard errors; ``(0.0, 1.0)`` without trials.

    Assumes independent trials and one look at a sample of fixed size. Raises ``ValueError`` for impossible counts.

    >>> lower, upper = wilson(19, 20)
    >>> round(lower, 2), round(upper, 2)
    (0.76, 0.99)
    """
    if trials < 0 or not 0 <= successes <= trials:
        raise ValueError(f"successes ({successes}) must be between 0 and trials ({trials})")
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    denominator = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / denominator
    half = z * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / denominator
    return max(0.0, centre - half), min(1.0, centre + half)
