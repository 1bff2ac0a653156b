"""A setting of every option of the daemon: what one that has them all must say and answer."""
import os
import re

import harness

# Where they say that models, lists and the socket are.
MODELS, SOCKETS = "/var/lib/gloved", "/run/gloved"
# Options for which another value than the default does not serve everywhere, or that have none.
VALUES = {
    "model": f"glove={MODELS}/glove",
    "list": f"animals={MODELS}/animals.txt",
    "lists": f"{MODELS}/lists",
    "socket": f"{SOCKETS}/gloved.sock",
    "engine": "cpu",
    "simd": "baseline",  # every processor has it
    "device": "all",
    "pin": "off",  # the machine's limit on locked memory must not matter
    "planes": "on",  # for fine-plane
    "gpu-memory": "6G",
}
# Options that have gone and are still accepted, for one release: a value of each.
GONE: dict[str, str] = {}
ANIMALS = "cat\ndog\nhorse\nfish\nbird\nsnake\n"
PETS = "cat\ndog\n"
# Answered as the settings `list`, `case` and `unknown` say.
QUESTIONS = (
    b"NEAR k=3 KING - man + woman",
    b"NEAR k=3 within=animals Dogs qqqqzzzzqqqq",
    b"RANK KING Queen",
)
# Options of the command line alone.
NOT_IN_A_FILE = {"config", "check", "stop-at-eof", "help", "version"}


def write_lists(directory):
    """Writes the lists that the settings name, and one for their directory of lists."""
    with open(os.path.join(directory, "animals.txt"), "w", encoding="utf-8") as file:
        file.write(ANIMALS)
    os.mkdir(os.path.join(directory, "lists"))
    with open(os.path.join(directory, "lists", "pets.txt"), "w", encoding="utf-8") as file:
        file.write(PETS)


def every_setting(help_text):
    """{name: value} of all options that a file may have, from `gloved --help`, and of GONE.

    >>> every_setting("  --simd avx2|neon   cpu\\n  --case exact|ignore  how (default:\\n  exact)")
    {'simd': 'baseline', 'case': 'ignore'}
    >>> every_setting("  --rank-cache BYTES  how (default: 64M)\\n  --threads T (default: 0)")
    {'rank-cache': '32M', 'threads': '2'}
    """
    settings = dict(GONE)
    for item in re.split(r"^(?=  --)", help_text, flags=re.M)[1:]:
        name, placeholder = re.match(r"  --([a-z-]+) ?(\S*)", item).groups()
        default = re.search(r"\(default: ([^ )]+)\)", " ".join(item.split()))
        if name in VALUES:
            settings[name] = VALUES[name]
        elif name not in NOT_IN_A_FILE:
            if not default:
                raise harness.Broken(f"settings.py has no value of {name}")
            settings[name] = another_value(placeholder.split("|"), default[1])
    return settings


def another_value(choices, default):
    """A choice that is not the default, or half of a number, or 2 instead of 0."""
    if len(choices) > 1:
        return next(choice for choice in choices if choice != default)
    number, unit = re.fullmatch(r"(\d+)(\D*)", default).groups()
    return f"{int(number) // 2 or 2}{unit}"


def as_file(settings):
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def as_options(settings):
    return [f"--{name}={value}" for name, value in settings.items()]


def names_in_help(text):
    """The options of `gloved --help` that a file may have. Raises harness.Broken if it is none.

    >>> names_in_help("  --pin auto|on   lock (see\\n                  --help)\\n  --help   print")
    {'pin'}
    """
    names = set(re.findall(r"^  --([a-z-]+)", text, re.M))
    if "help" not in names:
        raise harness.Broken(f"this is no --help: {text[:500]}")
    return names - NOT_IN_A_FILE


def undue_warnings(warnings, settings, help_text):
    """Complaints, unless the log has one warning for each setting that --help does not list, which
    names it and says since when it has no effect, and no other warning.

    >>> undue_warnings(["--pin has no effect since 1.1"], {"pin": "off"}, "  --help")
    []
    >>> undue_warnings(["--pin-to has no effect since 1.1"], {"pin": "off"}, "  --help")
    ['0 warnings that --pin has no effect', 'an undue warning: --pin-to has no effect since 1.1']
    >>> undue_warnings(["--pin has no effect since 1.1"], {"pin": "off"}, "  --pin off\\n  --help")
    ['an undue warning: --pin has no effect since 1.1']
    """
    complaints = []
    for name in sorted(settings.keys() - names_in_help(help_text)):
        of_it = re.compile(rf"--{name}(?![a-z-]).* no effect since \S")
        due = [each for each in warnings if of_it.search(each)]
        if len(due) != 1:
            complaints.append(f"{len(due)} warnings that --{name} has no effect")
        warnings = [each for each in warnings if each not in due]
    return complaints + [f"an undue warning: {each}" for each in warnings]


def not_in_force(settings, statistics):
    """Complaints of numbers that STATS shows otherwise, or if it shows none of them.

    >>> not_in_force({"max-k": "9", "line-timeout": "8"}, {"max_k": "9", "line_timeout_s": "7.0"})
    ['line-timeout is 7.0, not 8']
    >>> not_in_force({"pin": "off", "threads": "2"}, {"pin": "on"})
    ['STATS shows none of the settings']
    """
    complaints = []
    shown = 0
    for name, value in settings.items():
        key = name.replace("-", "_") + ("_s" if name.endswith("-timeout") else "")
        if not value.isdigit() or key not in statistics:
            continue
        shown += 1
        if float(statistics[key]) != float(value):
            complaints.append(f"{name} is {statistics[key]}, not {value}")
    return complaints if shown else ["STATS shows none of the settings"]


def answers(path):
    """The lines of the answers to QUESTIONS. Raises harness.Broken if one is refused."""
    with harness.Connection(path) as connection:
        return [harness.lines_of(connection.ask(question)) for question in QUESTIONS]
