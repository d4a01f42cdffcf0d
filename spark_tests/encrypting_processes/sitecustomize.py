"""Python imports this at its start: every process of an encrypted run encrypts its new tables."""

from encrypting_processes import always_encrypted

always_encrypted.install()
