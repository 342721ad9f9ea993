"""The upstream program for the tests that ask it: built once into the cache."""

import os
from pathlib import Path

import pytest
from oracle import upstream


@pytest.fixture(scope="session")
def oracle() -> Path:
    """The built program; without Go the test is skipped, with CI=true it fails."""
    try:
        return upstream.build()
    except upstream.NoOracle as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
