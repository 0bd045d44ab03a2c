"""Driving the cascade: the same generators, with calls made on the event loop or synchronously."""

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

from gateway.cascade.types import Call, Outcome

R = TypeVar("R")


async def drive(steps: Generator[Call, Outcome, R], ask: Callable[[Call], Awaitable[Outcome]]) -> R:
    """Run a cascade generator to its end, awaiting each call."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await ask(call))
    except StopIteration as done:
        return done.value
    finally:
        steps.close()


def drive_sync(steps: Generator[Call, Outcome, R], ask: Callable[[Call], Outcome]) -> R:
    """Run a cascade generator to its end, making each call synchronously."""
    try:
        call = next(steps)
        while True:
            call = steps.send(ask(call))
    except StopIteration as done:
        return done.value
    finally:
        steps.close()
