#!/usr/bin/python3
"""screen.py BENANZA CASE: what a terminal gets and what a pipe gets.

CASE is a folder with a model, records and profiles. On a terminal tables are as wide as it is, names lose their middle, and
there are colours where terminfo knows some; --wide, pipes and files have everything whole."""
import os
import pty
import re
import subprocess
import sys
import tempfile
import fcntl
import struct
import termios
import threading
import unicodedata

benanza, case = sys.argv[1:3]
folder = tempfile.mkdtemp()
db = os.path.join(folder, "db")
subprocess.run([benanza, "db", "import", "--db", db, case + "/records.jsonl"], check=True, capture_output=True)
ASK = [benanza, "analyze", case + "/branches.onnx", "--batch", "1", "--db", db, "--system", "testbox@onednn2.6.3"]
COLOUR = re.compile("\033\\[[0-9]*m")
LAST = b"\0end"


def written(child, main, other):
    """All that a child wrote to a terminal, which stays open here until a last word is read: of a terminal that nobody has open any more,
    Linux drops at times what is not read yet, on a busy machine once the last table."""
    threading.Thread(target=lambda: (child.wait(), os.write(other, LAST))).start()
    text = b""
    while not text.endswith(LAST):
        text += os.read(main, 65536)
    os.close(main)
    os.close(other)
    return text[:-len(LAST)].decode().replace("\r\n", "\n")


def on_terminal(columns, *more, ask=ASK, **env):
    """What a command writes to a terminal of so many columns."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    environment.update({"TERM": "xterm-256color"}, **env)
    child = subprocess.Popen(ask + list(more), stdout=other, stderr=subprocess.DEVNULL, env=environment)
    text = written(child, main, other)
    assert child.returncode == 0, child.returncode
    return text


def width(line):
    return sum(0 if unicodedata.combining(c) else 1 for c in line)


def tables(text):
    """Lines of the table of the slowest layers, whose last column is wide."""
    part = COLOUR.sub("", text).split("\nslowest ", 1)[1]
    return ["slowest " + part.split("\n")[0]] + part.split("\n\n")[0].split("\n")[1:]


whole = subprocess.run(ASK, check=True, capture_output=True, text=True).stdout
assert not COLOUR.search(whole) and "…" not in whole
key = "conv x=1x16x32x32 w=16x16x1x1 stride=1x1 pad=0x0x0x0 dilation=1x1 group=1"
assert key in whole

for columns in (104, 120, 140):
    shown = tables(on_terminal(columns))
    assert len(shown) == 7, shown
    assert max(map(width, shown)) == columns, (columns, shown)
    assert "…" in "".join(shown) and key not in "".join(shown)

# Sentences are broken between words, and nothing of them is lost. A command in quotes stays together; code is left as it is.
for columns in (60, 80, 120):
    narrow = COLOUR.sub("", on_terminal(columns))
    assert max(map(width, narrow.split("\n"))) <= columns, narrow
    assert narrow.split("\n\n")[0].split() == whole.split("\n\n")[0].split(), narrow

for page in (["--help"], ["bound", "--help"], ["help", "words"]):
    piped = subprocess.run([benanza] + page, check=True, capture_output=True, text=True).stdout
    narrow = COLOUR.sub("", on_terminal(72, ask=[benanza] + page))
    assert narrow.split() == piped.split() and max(map(width, narrow.split("\n"))) <= 72, narrow
assert on_terminal(40, "--json") == subprocess.run(ASK + ["--json"], check=True, capture_output=True, text=True).stdout

colours = on_terminal(100)
assert colours.startswith("\033[1m"), colours[:40]
assert COLOUR.sub("", on_terminal(100, "--wide")) == whole
for plain in (on_terminal(100, NO_COLOR="1"), on_terminal(100, TERM="dumb"), on_terminal(100, "--color", "never")):
    assert plain == COLOUR.sub("", colours), (plain, colours)
piped = subprocess.run(ASK + ["--color=always"], check=True, capture_output=True, text=True).stdout
assert piped != whole and COLOUR.sub("", piped) == whole


def told_on_terminal(*arguments, **env):
    """What the command writes to a terminal on stderr, while results go to a pipe."""
    main, other = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment.update({"TERM": "xterm-256color"}, **env)
    child = subprocess.Popen([benanza, *arguments], stdout=subprocess.DEVNULL, stderr=other, env=environment)
    return re.sub("\r\033\\[K", "", written(child, main, other))


# The label of a message has a colour, where stderr is the terminal; the sentence is plain.
LACKS = ["analyze", case + "/branches.onnx", "--batch", "9", "--db", db, "--system", "testbox@onednn2.6.3"]
warned = told_on_terminal(*LACKS)
assert "\033[33mbenanza analyze: warning:\033[0m the database lacks" in warned, warned
failed = told_on_terminal("layers", "nowhere.onnx")
assert "\033[31mbenanza layers:\033[0m nowhere.onnx" in failed, failed
assert told_on_terminal("laiers").startswith("\033[31mbenanza:\033[0m there is no command"), told_on_terminal("laiers")
for plain in (told_on_terminal(*LACKS, NO_COLOR="1"), told_on_terminal(*LACKS, "--color=never"), told_on_terminal(*LACKS, TERM="dumb")):
    assert "warning: the database lacks" in plain and not COLOUR.search(plain), plain
assert not COLOUR.search(subprocess.run([benanza, *LACKS], capture_output=True, text=True).stderr)
assert COLOUR.search(subprocess.run([benanza, *LACKS, "--color=always"], capture_output=True, text=True).stderr)
wrong = subprocess.run(ASK + ["--color", "red"], capture_output=True, text=True)
assert wrong.returncode == 2 and "auto, always or never, not 'red'" in wrong.stderr, wrong
subprocess.run(["rm", "-rf", folder], check=True)
