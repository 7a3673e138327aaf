"""Jobs that these tests name are read once."""

from tests.read_once import jobs_read_once

__all__ = ["jobs_read_once"]
