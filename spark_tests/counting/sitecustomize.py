"""Python imports this at its start: every process of a counted program notes what it opens."""

import read_log

read_log.install()
