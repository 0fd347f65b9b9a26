"""benanza from Python: what its commands say, and marks for iterations. Needs the standard library only.

    import benanza

    bound = benanza.bound("resnet50.onnx", threads=4)
    print(bound.sequential, [layer.variant for layer in bound.layers])

Each function runs the command of its name with --json and returns the document, whose members are attributes: docs/formats.md
lists them. `bench`, `db_export` and `db_salvage` return a list of documents; `db_compact`, `db_gc`, `completion` and `fleet_work` a text. An underscore follows a member's name that is a word of Python or a method of dictionaries (layer.class_, document.items_),
and stands for each blank or hyphen in it. Options of the command are keyword arguments: time_limit=0.5 is --time-limit 0.5, fuse=True is --fuse, a list is an
option that is repeated; where an option's name is a word of Python, as `from`, an underscore follows it. A document says by
`incomplete` whether something is missing in it (status 4), by `worse` whether a limit was passed (status 5), and has in `messages`
what the command wrote to stderr. Every other status raises `benanza.Error` with the command's message. The program is
$BENANZA_PROGRAM, else `benanza` of the PATH.

A program that is recorded marks its iterations with `with benanza.iteration():`, names parts of them with
`with benanza.range_("forward"):`, and says with `benanza.fact("batch", 32)` what a recording cannot see. Without `benanza profile`
around it these do nothing.
"""

import contextlib
import ctypes
import json
import keyword
import os
import re
import subprocess

INCOMPLETE, WORSE = 4, 5


class Error(Exception):
    """A command that failed: `status` is its exit status, the text its message."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def _attribute(member):
    """What a member is called as an attribute: class_ and items_, which mean something else; only_first for "only first"."""
    name = re.sub(r"\W", "_", member)
    return name + "_" if keyword.iskeyword(name) or hasattr(Outcome, name) else name


class Document(dict):
    """A JSON object whose members are attributes, too: d.layers is d["layers"]."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        for member, value in self.items():
            if _attribute(member) == name:
                return value
        raise AttributeError(f"there is no member '{name}', but {', '.join(map(_attribute, self))}")


class Outcome(Document):
    """The document of a command, with what its status says. These are no members of it."""
    incomplete = worse = False
    messages = ""


def _arguments(options):
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                yield option
            elif one is not None and one is not False:
                yield f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}"


def _program():
    return os.environ.get("BENANZA_PROGRAM", "benanza")


def _tell(document, done):
    document.__class__ = Outcome
    document.__dict__.update(incomplete=done.returncode == INCOMPLETE, worse=done.returncode == WORSE, messages=done.stderr)


def _run(command, arguments, options, *more):
    line = [_program(), *command.split(), *_arguments(options), *more, "--", *map(os.fspath, arguments)]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace", check=False)
    if done.returncode not in (0, INCOMPLETE, WORSE):
        raise Error(done.stderr.strip() or f"benanza {command} ended with status {done.returncode}", done.returncode)
    return done


def call(command, *arguments, **options):
    """Runs a command, "bound" or "db ls", and returns what it prints: a document, or a list of them."""
    done = _run(command, arguments, options, "--json")
    if not done.stdout:
        raise Error(done.stderr.strip() or f"benanza {command} printed nothing", done.returncode)
    found = json.loads(done.stdout, object_hook=Document)
    for document in found if isinstance(found, list) else [found]:
        _tell(document, done)
    return found[0] if isinstance(found, list) and len(found) == 1 else found


class Lines(list):
    """The documents of a command that prints JSON lines, and what its status says of all of them."""
    incomplete = worse = False
    messages = ""


def _one(document):
    """The analysis of one model, where there is one: else the document of all."""
    if len(document.models) != 1:
        return document
    model = document.models[0]
    model.__class__ = Outcome
    model.__dict__.update(document.__dict__)
    return model


def bound(*models, **options):
    """How fast models could run here. Of one model its analysis, else a document with `models`."""
    return _one(call("bound", *models, **options))


def analyze(*models, **options):
    """How fast models could run on a system, and what keeps a program from it: profile="run.bz". As bound."""
    return _one(call("analyze", *models, **options))


def profile(command, output, **options):
    """Records a program, ["python3", "infer.py"], into the file `output`; returns its exit status."""
    line = [_program(), "profile", f"--output={os.fspath(output)}", *_arguments(options), "--", *map(os.fspath, command)]
    return subprocess.run(line, check=False).returncode


def ranks(*recordings, **options):
    """The ranks of one program, each from a recording of its own and none merged with another: a document whose `ranks` has a
    row for each device of each. Recordings that are no ranks raise Error."""
    document = call("profile show", *recordings, **options)
    if document.record != "ranks":
        raise Error("ranks: of each of two or more ranks one recording is needed, which names its rank or holds communication", 2)
    return document


def _command(name, about):
    def function(*arguments, **options):
        return call(name, *arguments, **options)
    function.__name__ = function.__qualname__ = name.replace(" ", "_")
    function.__doc__ = f"{about} As `benanza {name} --json` with these arguments."
    return function


def _line_command(name, about):
    def function(*arguments, **options):
        done = _run(name, arguments, options)
        lines = Lines(json.loads(line, object_hook=Document) for line in done.stdout.splitlines())
        lines.incomplete, lines.messages = done.returncode == INCOMPLETE, done.stderr
        return lines
    function.__name__ = function.__qualname__ = name.replace(" ", "_")
    function.__doc__ = f"{about} A list of documents, empty where output=FILE takes them. As `benanza {name}` with these arguments."
    return function


def _text_command(name, about):
    def function(*arguments, **options):
        done = _run(name, arguments, options)
        return done.stdout + done.stderr
    function.__name__ = function.__qualname__ = name.replace(" ", "_")
    function.__doc__ = f"{about} The text that `benanza {name}` prints with these arguments."
    return function


layers = _command("layers", "The layers of models: of one model a document, of several a list of them.")
compare = _command("compare", "Two systems, library versions, dates, profiles or reports.")
replay = _command("replay", "A model run in its fastest known way, compared with the bound.")
predict = _command("predict", "How fast models would run on systems that nobody has measured: to='t4,h100'.")
gen = _command("gen", "Benchmarks that the database lacks, written into a folder: output=DIR.")
run = _command("run", "The benchmarks of a folder, run and stored.")
strip = _command("strip", "A copy of a model without its weights.")
whatif = _command("whatif", "What the iteration of a recording would take after a change.")
system = _command("system", "What this machine is, and which systems the database knows.")
bricks = _command("bricks", "Models as sequences of layers, each unique one once.")
transfer = _command("transfer", "What moving data costs: lines and the points that they go through.")
doctor = _command("doctor", "What is wrong with this machine for measuring.")
profile_show = _command("profile show", "What recordings tell.")
suite_list = _command("suite list", "The training runs of an edition.")
suite_run = _command("suite run", "Training runs of an edition, run and recorded: what each came to.")
suite_report = _command("suite report", "Recorded training runs side by side.")
profile_tables = _command("profile tables", "A recording's tables, as other analyzers have them: table=NAME for one of them.")
db_ls = _command("db ls", "The systems that the database knows.")
db_show = _command("db show", "Records of problems that contain all the words.")
db_check = _command("db check", "What is damaged in the database.")
db_import = _command("db import", "Records added from text files.")
db_merge = _command("db merge", "Records added from other databases or exports.")
db_export = _line_command("db export", "Systems and records of the database.")
db_salvage = _line_command("db salvage", "What is intact in a damaged database.")
db_compact = _text_command("db compact", "The database's file, without its free pages.")
db_gc = _text_command("db gc", "All but the newest keep=N measurements, deleted.")
bench = _line_command("bench", "Benchmarks of problems by their texts: what this machine is, and a record for each variant.")
completion = _text_command("completion", "The script that completes commands in a shell.")
fleet_plan = _command("fleet plan", "What is missing or old on each system of a fleet.")
fleet_submit = _command("fleet submit", "A job array for each kind of machine, submitted.")
fleet_nightly = _command("fleet nightly", "A night, from its plan to its report.")
fleet_work = _text_command("fleet work", "One shard, measured on this node.")
fleet_status = _command("fleet status", "How far a night is.")
fleet_collect = _command("fleet collect", "What the shards measured so far, merged.")
fleet_report = _command("fleet report", "What a night brought.")


# ---- marks ----------------------------------------------------------------------------------------------------------


def _function(name, *types):
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return lambda *_: None
    function.restype = None
    function.argtypes = types
    return function


iteration_begin = _function("benanza_iteration_begin")
iteration_end = _function("benanza_iteration_end")
_range_begin = _function("benanza_range_begin", ctypes.c_char_p)
_range_end = _function("benanza_range_end")
_fact = _function("benanza_fact", ctypes.c_char_p, ctypes.c_char_p)


def fact(key, value):
    """Tells the recording what it cannot see: fact("batch", 32)."""
    _fact(str(key).encode(), str(value).encode())


@contextlib.contextmanager
def iteration():
    iteration_begin()
    try:
        yield
    finally:
        iteration_end()


@contextlib.contextmanager
def range_(name):
    """Names a part of an iteration: "forward", "backward", "update"."""
    _range_begin(name.encode())
    try:
        yield
    finally:
        _range_end()
