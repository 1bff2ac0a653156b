"""The version of gloved, daemon and client: CMakeLists.txt has the same."""

__version__ = "0.1.0"
