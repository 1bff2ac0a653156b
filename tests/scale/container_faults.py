#!/usr/bin/env python3
"""Turns bits in packed downloads and arrays, one at a time, and sees that none makes another model.

    container_faults.py BIN_DIR [OLD_BIN_DIR] [--faults N] [--seed S]

gloved-convert of BIN_DIR reads a small text, packed in every way, and the same words and numbers as
arrays, with one bit turned in each of N (2,000) runs. The table tells how many faults it refused,
how many made no difference to keys and values, and how many changed them unnoticed. That fails
where the container has a checksum: tar, npy and safetensors have none of their data. Faults that
these programs take and those of OLD_BIN_DIR refuse are counted too.

Exit status: 0 all held, 1 something did not, 2 wrong usage.
"""
import bz2
import gzip
import io
import json
import lzma
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../faults"))
import harness  # noqa: E402


def a_zip(text, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("words.txt", text)
    return out.getvalue()


def a_tar(text):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("words.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return out.getvalue()


def a_npy(text):
    rows = [line.split()[1:] for line in text.splitlines()]
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (
        len(rows),
        len(rows[0]),
    )
    header = header.ljust(128 - 10 - 1) + "\n"
    numbers = b"".join(struct.pack("<f", float(number)) for row in rows for number in row)
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + numbers


def a_safetensors(text):
    numbers = a_npy(text)[128:]
    shape = [len(text.splitlines()), len(text.split(b"\n")[0].split()) - 1]
    tensor = {"dtype": "F32", "shape": shape, "data_offsets": [0, len(numbers)]}
    header = json.dumps({"embeddings": tensor}).encode()
    return struct.pack("<Q", len(header)) + header + numbers


def containers(text):
    """Pairs of a name and the text packed that way, or its numbers as an array."""
    yield "zip stored", a_zip(text, zipfile.ZIP_STORED)
    yield "zip deflated", a_zip(text, zipfile.ZIP_DEFLATED)
    yield "gzip", gzip.compress(text)
    yield "bzip2", bz2.compress(text)
    yield "xz", lzma.compress(text)
    done = subprocess.run(["zstd", "-qc"], input=text, stdout=subprocess.PIPE, check=True)
    yield "zstd", done.stdout
    yield "tar", a_tar(text)
    yield "tar.gz", gzip.compress(a_tar(text))
    yield "npy", a_npy(text)
    yield "npz", a_zip(a_npy(text), zipfile.ZIP_DEFLATED)
    yield "safetensors", a_safetensors(text)


# Containers whose data has no checksum, and those of numbers without words.
UNCHECKED = ("tar", "npy", "safetensors")
ARRAYS = ("npy", "npz", "safetensors")


def model_of(bin_dir, content, options, work):
    """Keys and values of the model that the programs make; None if they refuse."""
    path, out = os.path.join(work, "in"), os.path.join(work, "model")
    with open(path, "wb") as file:
        file.write(content)
    shutil.rmtree(out, ignore_errors=True)
    converter = os.path.join(bin_dir, "gloved-convert")
    done = harness.run([converter, "--threads", "1", "--planes", "none", *options, path, out])
    if done.returncode not in (0, 1):
        raise harness.Broken(f"gloved-convert: status {done.returncode}: {done.stderr}")
    if done.returncode == 1:
        return None
    model = []
    for name in ("keys", "values"):
        with open(os.path.join(out, name), "rb") as file:
            model.append(file.read())
    return model


@harness.program(
    harness.option("old", "", "programs of another build", nargs="?"),
    harness.option("--faults", 2000, "bits to turn in each container"),
    harness.option("--seed", 1, "of the random numbers"),
)
def main(arguments, verdicts):
    harness.need_program("zstd", "zstd")
    chance = random.Random(arguments.seed)
    text = b"".join(
        b"word%d " % i + b" ".join(b"%.4f" % chance.gauss(0, 0.4) for _ in range(8)) + b"\n"
        for i in range(20)
    )
    words = os.path.join(arguments.work, "words")
    with open(words, "wb") as file:
        file.writelines(line.split()[0] + b"\n" for line in text.splitlines())
    of_text = model_of(arguments.bin, text, [], arguments.work)
    rows = []
    for name, sound in containers(text):
        options = ["--words", words] if name in ARRAYS else []
        wanted = model_of(arguments.bin, sound, options, arguments.work)
        if wanted is None:
            verdicts.add(f"{name}: the sound file is refused")
            continue
        if wanted != of_text:
            verdicts.add(f"{name}: the sound file makes another model than text")
        counts = dict.fromkeys(("refused", "same", "changed", "new, same", "new, changed"), 0)
        for _ in range(arguments.faults):
            bit = chance.randrange(8 * len(sound))
            damaged = bytearray(sound)
            damaged[bit // 8] ^= 1 << bit % 8
            made = model_of(arguments.bin, damaged, options, arguments.work)
            kind = "refused" if made is None else "same" if made == wanted else "changed"
            counts[kind] += 1
            if kind == "changed" and name not in UNCHECKED:
                verdicts.add(f"{name}: bit {bit} makes another model")
            if made is None or not arguments.old:
                continue
            if model_of(arguments.old, damaged, options, arguments.work) is None:
                counts["new, " + kind] += 1
        rows.append([name, len(sound), *counts.values()])
        print(rows[-1], flush=True)
    columns = ["refused", "same model", "changed", "refused by old: same", "changed"]
    harness.print_table(["container", "bytes", *columns], rows)
    return f"{arguments.faults} bits in each of {len(rows)} containers"
