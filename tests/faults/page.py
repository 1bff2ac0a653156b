"""Reads the named blocks of docs/operations.md, so that tests run what the page says."""
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/operations.md")


def block(name, language="sh"):
    """The text between «```LANGUAGE NAME» and «```»."""
    with open(PAGE, encoding="utf-8") as page:
        found = re.findall(rf"^```{language} {name}\n(.*?)^```$", page.read(), re.M | re.S)
    if len(found) != 1:
        sys.exit(f"docs/operations.md has {len(found)} blocks «{language} {name}», not one")
    return found[0]
