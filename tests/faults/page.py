"""Reads the named blocks of the administrators' pages, so that tests run what these say."""
import os
import re
import sys

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
PAGES = ("operations.md", "monitoring.md", "replicas.md", "other-hosts.md")


def block(name, language="sh"):
    """The text between «```LANGUAGE NAME» and «```»."""
    found = []
    for name_of_page in PAGES:
        with open(os.path.join(DOCS, name_of_page), encoding="utf-8") as page:
            found += re.findall(rf"^```{language} {name}\n(.*?)^```$", page.read(), re.M | re.S)
    if len(found) != 1:
        sys.exit(f"{', '.join(PAGES)} have {len(found)} blocks «{language} {name}», not one")
    return found[0]
