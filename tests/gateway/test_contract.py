"""The API's contract is checked in: a change of it is a change of ``openapi.json``, seen in review."""

import json
from pathlib import Path

import pytest

from gateway.api import api

SNAPSHOT = Path(__file__).with_name("openapi.json")


@pytest.mark.req("FR-1.1")
def test_the_openapi_document_is_the_one_that_was_agreed():
    document = json.loads(json.dumps(api.get_openapi_schema(path_prefix="/v1/")))
    if document != json.loads(SNAPSHOT.read_text()):
        SNAPSHOT.with_suffix(".new.json").write_text(json.dumps(document, indent=2) + "\n")
        pytest.fail("the contract changed: compare tests/gateway/openapi.new.json with openapi.json")
