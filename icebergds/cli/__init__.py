"""The command `icebergds`: looks at tables, changes and maintains them from a terminal.

Commands are functions that return an `Answer`; `command.py` adds the options that all of them have,
and prints the answer or the error. What a command needs is imported when it runs.
"""
