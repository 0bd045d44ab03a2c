"""Telling the workers about checks: in groups, without ever blocking, and never in silence."""

import pytest

from gateway.dispatch import MAX_IDS, CheckDispatcher
from tests.gateway.world import wait_for


@pytest.mark.req("INV-28")
def test_a_broker_that_refuses_costs_only_its_group_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    published: list[list[str]] = []
    is_away = [True]

    def publish(ids: list[str]) -> None:
        if is_away[0]:
            is_away[0] = False
            raise ConnectionError("broker.internal refused")
        published.append(ids)

    dispatcher = CheckDispatcher(publish)
    dispatcher.put(["a", "b"])
    dispatcher.start()
    wait_for(lambda: not is_away[0])
    dispatcher.put([str(number) for number in range(MAX_IDS + 1)])
    dispatcher.stop()
    assert [len(group) for group in published] == [MAX_IDS, 1]
    assert "broker refused 2 checks (ConnectionError)" in caplog.text
    assert "broker.internal" not in caplog.text


@pytest.mark.req("INV-28", "NFR-2")
def test_what_waits_for_a_slow_broker_is_bounded_and_the_rest_is_said_to_be_left(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.dispatch.MAX_WAITING", 3)
    published: list[str] = []
    dispatcher = CheckDispatcher(published.extend)
    dispatcher.put(["a", "b"])
    dispatcher.put(["c", "d", "e"])
    assert (dispatcher.n_dropped, "2 checks are left to the sweep" in caplog.text) == (2, True)
    dispatcher.start()
    dispatcher.stop()
    assert published == ["c", "d", "e"]
