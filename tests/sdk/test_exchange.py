"""What an exchange still holds when it is over."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from otel_mcp_resume.sdk.exchange import Exchange
from tests.sdk.client_world import HTTP


def test_an_exchange_that_is_over_holds_no_http_client() -> None:
    """Contexts of cancelled timers hold the exchange, and a client is heavy."""
    transport: Any = None  # nothing of it is looked at here
    http = HTTP.AsyncClient()
    exchange = Exchange(transport, http, None)
    gone = weakref.ref(http)
    exchange.let_go()
    assert exchange.http not in (http, None), "a request of anybody would be one of its"
    del http
    gc.collect()
    assert gone() is None
