"""frames.py PLUGIN [MARKS]: library calls from known lines of Python; MARKS iterations marked by benanza.py."""
import ctypes
import sys

run = ctypes.CDLL(sys.argv[1]).plugin_run
callback = ctypes.CFUNCTYPE(None)


def innermost(n):
    return run(n, callback(lambda: None), callback(lambda: None))


def outer():
    return innermost(3)


if len(sys.argv) > 2:
    import benanza

    for _ in range(int(sys.argv[2])):
        with benanza.iteration():
            innermost(2)
sys.exit(outer())
