"""A process that reads the release state, says so, waits to be told to go, and then promotes what it saw.

Run by the race test as ``python -m tests.release.racer``; ``DATABASE_URL`` names the ledger.
"""

import sys

import django


def main() -> None:
    """Promote version 2 over the live version that this process saw."""
    django.setup()
    from common.clock import SystemClock
    from common.errors import Refused
    from ledger.models import Version
    from release.moves import Place, move

    live = Version.objects.filter(state="live").first()
    number = int(sys.argv[1])
    seen = Version.objects.get(number=number)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    try:
        moved = move(seen, Place("live", 100), kind="live", detail="raced", clock=SystemClock(), live=live)
        sys.stdout.write(f"{moved.is_done}\n")
    except Refused as refused:
        sys.stdout.write(f"refused {refused}\n")


if __name__ == "__main__":
    main()
