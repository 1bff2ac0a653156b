#!/usr/bin/env python3
"""Plants deliberate faults in gloved, one at a time, and tells which test finds each.

    mutants.py pick BUILD [--seed N] [--count N] [--only GLOB]… > TABLE
    mutants.py run BUILD TABLE [--rows A-B] [--jobs N] [--timeout S] [--target T]… [--no-baseline]
                   [-- CTEST-ARG…] > RESULT

pick changes random lines of the C++ sources that BUILD compiles, by the rules of MUTATIONS. A
change counts if it compiles without a warning and the object file differs, debug information left
out. pick needs the precompiled headers alone, and leaves all sources as they are.

run plants each row of a table in its source, builds, runs ctest until a test fails, and puts the
source back. It finds a row's line by its text, so a table stays good while other lines change. The
tests that the table names run first. A source with uncommitted changes is refused. RESULT is a
table again: «found_by» names the failed tests, «build», «hangs» (the build or the tests took more
than --timeout seconds), «not found», or «not planted» where the text is gone. A fault may fill
memory or delete files: run it where that can be borne.

    --only GLOB      only such sources: 'daemon/*'
    --rows A-B       only these rows, counted from 1; cat joins the results of several calls
    --target T       build only this; all by default
    --no-baseline    the tests are known to pass without a fault; else that is seen first

On a tree that scripts/test has built, where its tests take a minute:

    tests/scale/mutants.py run build/dev tests/scale/mutants.tsv --timeout 200 -- -LE slow

Exit status: 0 all found, 1 some not, 2 wrong usage, or tests that fail without a fault.
"""
import argparse
import contextlib
import fnmatch
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("common/", "cli/", "client/", "daemon/", "kernels/", "tools/")
COLUMNS = ("seed", "file", "line", "kind", "before", "after", "found_by", "seconds")
NOT_RUN, NOT_FOUND, NOT_PLANTED = "-", "not found", "not planted"
# Who else than a test finds a fault. CTEST: it fails, and no test does.
HANGS, BUILD, CTEST = "hangs", "build", "ctest"

PAIRS = (
    (("<", "<="), (">", ">="), ("==", "!="), ("&&", "||"), ("true", "false"))
    + (("+", "-"), ("*", "/"), ("+=", "-="), ("break", "continue"))
)
OTHER = {**dict(PAIRS), **{second: first for first, second in PAIRS}}
# Kind, what is replaced, by what. clang-format puts spaces around operators of two operands alone.
MUTATIONS = (
    ("comparison", r"(?<= )([<>]=?|[=!]=)(?= )", lambda old: OTHER[old]),
    ("arithmetic", r"(?<= )([-+*/]|[-+]=)(?= )", lambda old: OTHER[old]),
    ("logical", r"(?<= )(&&|\|\|)(?= )", lambda old: OTHER[old]),
    ("logical", r"!(?=[\w(])", lambda old: ""),
    ("condition", r"(?<=\bif \().+(?=\) \{$)", lambda old: "true"),
    ("condition", r"(?<=\bif \().+(?=\) \{$)", lambda old: "false"),
    ("statement", r"^(?!return\b)[\w.:>*-]+(\(.*\)| [-+*/|&]?= .+);$", lambda old: "{}"),
    ("return", r"(?<=\breturn )(?!true;|false;).+(?=;)", lambda old: "{}"),
    ("constant", r"\b(true|false)\b", lambda old: OTHER[old]),
    ("constant", r"(?<![\w.'])\d+(?![\w.'])", lambda old: str(int(old) + 1)),
    ("constant", r"(?<![\w.'])[1-9]\d*(?![\w.'])", lambda old: str(int(old) - 1)),
    ("jump", r"\b(break|continue)(?=;)", lambda old: OTHER[old]),
)
# Preprocessor, and assertions: a weaker one is no fault.
LEFT_ALONE = re.compile(r"\s*#|.*\b(static_)?assert\(|.*\\$")
NUMBER_OR_TEXT = re.compile(
    r"""(?P<number>\b\d[\w']*)|//[^\n]*|/\*.*?\*/|R"(?P<end>\w*)\(.*?\)(?P=end)"|"""
    r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL,
)


def tell(message):
    print(f"mutants.py: {message}", file=sys.stderr, flush=True)


def refuse(message):
    tell(message)
    sys.exit(2)


def without_text(source):
    """A source whose comments and quoted characters are blanks, so that columns stay.

    >>> without_text("a = 1'000; // b = 2\\nf(\\"x, \\\\\\"\\", 'y'); /* c\\nd */ e();")
    "a = 1'000;         \\nf(       ,    );     \\n     e();"
    """
    return NUMBER_OR_TEXT.sub(
        lambda found: found[0] if found["number"] else re.sub(r"[^\n]", " ", found[0]), source
    )


def mutations(line, code):
    """(kind, changed line) for each way to change a line. code: the line without_text.

    >>> [after for kind, after in mutations("  if (a < 2) {", "  if (a < 2) {")]
    ['  if (a <= 2) {', '  if (true) {', '  if (false) {', '  if (a < 3) {', '  if (a < 1) {']
    >>> mutations('log("a == b");', 'log(        );')
    [('statement', '{}')]
    >>> mutations("std::vector<int> b = f(x, !y);", "std::vector<int> b = f(x, !y);")
    [('logical', 'std::vector<int> b = f(x, y);')]
    >>> mutations("return n;", "return n;") + mutations("break;", "break;")
    [('return', 'return {};'), ('jump', 'continue;')]
    """
    indent = len(code) - len(code.lstrip())
    changed = []
    for kind, pattern, replacement in MUTATIONS if not LEFT_ALONE.match(line) else ():
        for found in re.finditer(pattern, code.strip()):
            begin, end = (indent + place for place in found.span())
            # The end of a statement of several lines looks like one, but for its parentheses.
            if found[0].count("(") == found[0].count(")"):
                changed.append((kind, line[:begin] + replacement(found[0]) + line[end:]))
    return changed


def line_to_change(lines, before, near):
    """The index of the line with this text that is nearest to a line number, or None.

    >>> line_to_change(["a;", "  b;", "a;", "a;"], "a;", 2), line_to_change(["a;"], "c;", 1)
    (0, None)
    """
    places = [index for index, line in enumerate(lines) if line.strip() == before]
    return min(places, key=lambda index: abs(index + 1 - near), default=None)


def compile_commands(build):
    """The command that compiles each source of the product, in words."""
    path = Path(build) / "compile_commands.json"
    if not path.exists():
        refuse(f"there is no {path}; configure first: cmake --preset dev")
    commands = {}
    for entry in json.loads(path.read_text()):
        name = os.path.relpath(os.path.realpath(entry["file"]), ROOT)
        if name.startswith(FOLDERS) and name.endswith(".cpp"):
            commands.setdefault(name, shlex.split(entry["command"]))
    return commands or refuse(f"{path} names no source of {ROOT}; it belongs to another tree")


def object_of(text, command):
    """The object file that a text makes in place of a source; None if it does not compile."""
    # Assertions hold the source's name, so it is always the same.
    words = [*command[: command.index("-o")], "-o", "object", "-c", "source.cpp"]
    with tempfile.TemporaryDirectory() as work:
        Path(work, "source.cpp").write_text(text)
        if subprocess.run(words, cwd=work, capture_output=True).returncode != 0:
            return None
        subprocess.run(["objcopy", "--strip-debug", "object"], cwd=work, check=True)
        return Path(work, "object").read_bytes()


def pick(arguments):
    places = []
    commands = compile_commands(arguments.build)
    for name in sorted(commands):
        if any(fnmatch.fnmatch(name, glob) for glob in arguments.only or ["*"]):
            text = (ROOT / name).read_text()
            codes = without_text(text).split("\n")
            places += [(name, text, index, code) for index, code in enumerate(codes)]
    dice = random.Random(arguments.seed)
    dice.shuffle(places)
    originals = {}
    left = arguments.count
    print(*COLUMNS, sep="\t", flush=True)
    for name, text, index, code in places:
        lines = text.split("\n")
        before = lines[index].strip()
        ways = mutations(lines[index], code)
        if left == 0 or not ways:
            continue
        kind, lines[index] = dice.choice(ways)
        if name not in originals:
            originals[name] = object_of(text, commands[name])
        if originals[name] is None:
            refuse(f"{name} does not compile; build first: cmake --build {arguments.build}")
        row = (arguments.seed, name, index + 1, kind, before, lines[index].strip())
        if object_of("\n".join(lines), commands[name]) in (None, originals[name]):
            tell(f"does not compile, or to the same code: {row}")
        else:
            print(*row, NOT_RUN, NOT_RUN, sep="\t", flush=True)
            left -= 1
    if left > 0:
        refuse(f"{left} rows too few: these sources have no more lines to change")
    return 0


@contextlib.contextmanager
def planted(row):
    """A row's fault stands in its source meanwhile. Yields whether its line is still there."""
    path = ROOT / row["file"]
    # Without Git, or in an exported tree, the text in memory must do.
    git = ["git", "-C", ROOT, "status", "--porcelain", "--", path]
    if shutil.which("git") and subprocess.run(git, capture_output=True).stdout:
        refuse(f"{path} has uncommitted changes: commit them; git restore removes a left fault")
    original = path.read_text() if path.exists() else ""
    lines = original.split("\n")
    index = line_to_change(lines, row["before"], int(row["line"]))
    if index is None:
        yield False
        return
    row["line"] = index + 1
    lines[index] = lines[index].replace(row["before"], row["after"])
    changed = "\n".join(lines)
    try:
        path.write_text(changed)
        yield True
    finally:
        if path.read_text() == changed:
            path.write_text(original)
        else:
            tell(f"{path} was edited meanwhile: undo «{row['after']}», line {index + 1}, yourself")


def status_of(command, limit):
    """A command's exit status; None if it took more than so many seconds. Leaves no process."""
    no = subprocess.DEVNULL
    with subprocess.Popen(
        command, stdin=no, stdout=no, stderr=no, start_new_session=True
    ) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def build(arguments):
    command = ["cmake", "--build", arguments.build, "--parallel", str(arguments.jobs)]
    command += [word for target in arguments.target for word in ("--target", target)]
    return status_of(command, arguments.timeout)


def failed_tests(arguments, *options):
    """The names of the tests that fail first, HANGS, CTEST, or nothing if all pass."""
    report = Path(arguments.build) / "Testing/Temporary/LastTestsFailed.log"
    report.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", arguments.build, "--parallel", str(arguments.jobs)]
    command += ["--stop-on-failure", *arguments.ctest, *options]
    status = status_of(command, arguments.timeout)
    if not status:
        return HANGS if status is None else ""
    # Lines «number:name». What it writes for --output-junit is no XML where a test prints bytes.
    lines = report.read_text().splitlines() if report.exists() else ()
    return " ".join(line.partition(":")[2] for line in lines) or CTEST


def finders(row, arguments):
    """What finds the fault that is planted."""
    status = build(arguments)
    if status != 0:
        return HANGS if status is None else BUILD
    found = CTEST
    if row["found_by"] not in (NOT_RUN, NOT_FOUND, NOT_PLANTED, HANGS, BUILD, CTEST):
        names = "|".join(re.escape(name) for name in row["found_by"].split(" "))
        found = failed_tests(arguments, "--no-tests=ignore", "-R", f"^({names})$")
    # A test that is not built says nothing about the fault; without a fault, all others passed.
    if found in ("", CTEST):
        found = failed_tests(arguments, "--no-tests=error") or NOT_FOUND
    return found


def rows_of(path):
    try:
        rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
    except OSError as error:
        refuse(f"{path}: {error.strerror}; pick makes a table")
    if any(len(row) != len(COLUMNS) for row in rows):
        refuse(f"{path}: a row has other columns than {', '.join(COLUMNS)}; pick makes a table")
    return [dict(zip(COLUMNS, row)) for row in rows if row[0] != COLUMNS[0]]


def run(arguments):
    compile_commands(arguments.build)
    rows = rows_of(arguments.table)
    first, last = arguments.rows or (1, len(rows))
    if not 1 <= first <= last <= len(rows):
        refuse(f"--rows: {arguments.table} has the rows 1 to {len(rows)}")
    if build(arguments) != 0:
        refuse(f"without a fault, this fails too: cmake --build {arguments.build}")
    failed = "" if arguments.no_baseline else failed_tests(arguments, "--no-tests=error")
    if failed:
        refuse(f"without a fault, this fails too: {failed}; ctest's -E leaves a test out")
    missed = 0
    if first == 1:
        print(*COLUMNS, sep="\t", flush=True)
    for number, row in enumerate(rows[first - 1 : last], first):
        begun, before = time.monotonic(), row["found_by"]
        with planted(row) as is_there:
            row["found_by"] = finders(row, arguments) if is_there else NOT_PLANTED
        row["seconds"] = round(time.monotonic() - begun)
        missed += row["found_by"] in (NOT_FOUND, NOT_PLANTED)
        print(*row.values(), sep="\t", flush=True)
        tell(f"row {number}, {row['file']}:{row['line']}: {row['found_by']}; before: {before}")
    build(arguments)
    tell(f"{missed} of {last - first + 1} not found")
    return 1 if missed else 0


def row_range(text):
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def parsed(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    picking, running = commands.add_parser("pick"), commands.add_parser("run")
    picking.add_argument("build")
    picking.add_argument("--seed", type=int, default=1)
    picking.add_argument("--count", type=int, default=24)
    picking.add_argument("--only", action="append", default=[])
    running.add_argument("build")
    running.add_argument("table")
    running.add_argument("--rows", type=row_range)
    running.add_argument("--jobs", type=int, default=os.cpu_count())
    running.add_argument("--timeout", type=float, default=600)
    running.add_argument("--target", action="append", default=[])
    running.add_argument("--no-baseline", action="store_true")
    end = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:end])
    arguments.ctest = words[end + 1 :]
    return arguments


def main():
    # They too put the source back.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(2))
    arguments = parsed(sys.argv[1:])
    try:
        return pick(arguments) if arguments.command == "pick" else run(arguments)
    except KeyboardInterrupt:
        return 2


if __name__ == "__main__":
    sys.exit(main())
