"""Disks without room, for tests that mount one."""


def fill(path):
    """Takes all that is left, to the last byte."""
    with open(path, "wb", buffering=0) as f:
        try:
            while f.write(bytes(1 << 16)):
                pass
        except OSError:
            pass
