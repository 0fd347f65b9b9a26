#!/usr/bin/python3
"""completion.py BENANZA SHELL: types into a real shell, presses the tab key, and looks at the line that the shell then has.

The shell runs in a pseudo-terminal, in a folder of files whose names begin like commands and values: where a command is
wanted, a file must not stand in its way. Exit 77 where the shell is not installed."""
import fcntl
import os
import pty
import shutil
import signal
import struct
import sys
import tempfile
import termios
import threading
import time

benanza, shell = os.path.abspath(sys.argv[1]), sys.argv[2]
if not shutil.which(shell):
    print(f"{shell} is not installed")
    sys.exit(77)

FILES = ["alpha.onnx", "boundary", "hotel", "page one.html", "fishes", "imported"]
CASES = [  # what is typed, and what the line is behind the tab key
    ("benanza boun", "benanza bound"),
    ("benanza db im", "benanza db import"),
    ("benanza fleet nigh", "benanza fleet nightly"),
    ("benanza help repl", "benanza help replay"),
    ("benanza help db sal", "benanza help db salvage"),
    ("benanza completion fi", "benanza completion fish"),
    ("benanza --ver", "benanza --version"),
    ("benanza bound --no-r", "benanza bound --no-run"),
    ("benanza bound alpha.onnx --fus", "benanza bound alpha.onnx --fuse"),
    ("benanza bound --cache ho", "benanza bound --cache hot"),
    ("benanza bound --cache=ho", "benanza bound --cache=hot"),
    ("benanza db ls --color nev", "benanza db ls --color never"),
    ("benanza bound alp", "benanza bound alpha.onnx"),
    ("benanza bound alpha.onnx --html pag", "benanza bound alpha.onnx --html page\\ one.html"),
    ("benanza bound --html=fi", "benanza bound --html=fishes"),
    ("benanza profile -o hot", "benanza profile -o hotel"),
    ("benanza profile -o x -- cat bounda", "benanza profile -o x -- cat boundary"),
]
# How the shell is started, and what reads the completion and binds a key (Ctrl-X p) to writing the line to a file.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], """source <(benanza completion bash)
bind -x '"\\C-xp": printf "%s" "$READLINE_LINE" > line.part; mv line.part line'"""),
    "zsh": (["-f", "-i"], """autoload -Uz compinit; compinit -D -u
benanza completion zsh > script; source ./script
tell() { print -rn -- "$BUFFER" > line.part; mv line.part line }; zle -N tell; bindkey '^Xp' tell; bindkey -e '^Xp' tell"""),
    "fish": (["--no-config", "-i"], """benanza completion fish | source
function tell; commandline > line.part; mv line.part line; end; bind \\cxp tell"""),
}


def wait_for(path):
    end = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < end, f"{shell} says nothing: {bytes(said)[-2000:]!r}"
        time.sleep(0.01)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    os.unlink(path)
    return text


def listen():
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:
            return
        if not part:
            return
        said.extend(part)


folder = tempfile.mkdtemp()
for name in FILES:
    with open(os.path.join(folder, name), "w", encoding="utf-8"):
        pass
os.mkdir(os.path.join(folder, ".home"))
os.symlink(benanza, os.path.join(folder, ".home", "benanza"))
options, begin = SHELLS[shell]
said = bytearray()
child, main = pty.fork()
if not child:
    os.chdir(folder)
    home = os.path.join(folder, ".home")
    os.execvpe(shell, [shell, *options], {"HOME": home, "TERM": "xterm", "LC_ALL": "C.UTF-8", "PATH": home + ":" + os.environ["PATH"]})
fcntl.ioctl(main, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))
threading.Thread(target=listen, daemon=True).start()
for line in begin.split("\n") + ["echo > ready"]:
    os.write(main, line.encode() + b"\r")
wait_for(os.path.join(folder, "ready"))

status = 0
for typed, wanted in CASES:
    os.write(main, typed.encode() + b"\t\x18p")
    line = wait_for(os.path.join(folder, "line")).rstrip()
    os.write(main, b"\x15")  # Ctrl-U empties the line
    if line != wanted:
        print(f"{shell}: '{typed}' and the tab key give '{line}', not '{wanted}'")
        status = 1
os.kill(child, signal.SIGKILL) # it does not end by itself: the listening thread holds the terminal open
os.waitpid(child, 0)
shutil.rmtree(folder)
sys.exit(status)
