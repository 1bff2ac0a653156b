#!/usr/bin/env python3
"""Times PyTorch's cdist and gloved-bench distmat on this machine's GPU, by turns.

    cdist_beside.py BENCH [--rows M] [--dim D] [--rounds N] [--repeat R]

BENCH is the gloved-bench program. Both compute all distances of M random float32 rows and leave
them on the device; device events measure the time. PyTorch uses the matrix product
(use_mm_for_euclid_dist) without TF32 and computes Euclidean distances, gloved squared ones. The
relative difference of each from float64 is printed for a sample of rows. Exit status 1 if gloved is
slower, or without PyTorch or a GPU.
"""
import argparse
import csv
import statistics
import subprocess
import sys


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Times PyTorch's cdist beside gloved-bench distmat.",
        epilog="example: cdist_beside.py build/cuda/bin/gloved-bench --rows 16384 --dim 300",
    )
    parser.add_argument("bench", metavar="BENCH", help="the gloved-bench program")
    parser.add_argument("--rows", type=positive, default=16384)
    parser.add_argument("--dim", type=positive, default=300)
    parser.add_argument(
        "--rounds", type=positive, default=3, help="how often both are measured, by turns"
    )
    parser.add_argument("--repeat", type=positive, default=20, help="timed runs in each of them")
    return parser.parse_args()


def gloved_ms(arguments):
    command = [
        arguments.bench,
        "distmat",
        "--rows",
        str(arguments.rows),
        "--dim",
        str(arguments.dim),
        "--engines",
        "cuda",
    ]
    command += ["--repeat", str(arguments.repeat), "--format", "csv"]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"cdist_beside.py: {' '.join(command)} ended with status {done.returncode}")
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith("#")]
    (row,) = csv.DictReader(lines)
    return float(row["ms mean"])


def main():
    arguments = parse_arguments()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"cdist_beside.py: {error}")
    if not torch.cuda.is_available():
        sys.exit("cdist_beside.py: PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    points = torch.randn(arguments.rows, arguments.dim, device="cuda")
    print(
        f"torch {torch.__version__} on {torch.cuda.get_device_name()}, {arguments.rows} x"
        f" {arguments.dim} float32"
    )

    def cdist():
        return torch.cdist(points, points, compute_mode="use_mm_for_euclid_dist")

    def torch_ms():
        for _ in range(3):
            cdist()
        times = []
        for _ in range(arguments.repeat):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            distances = cdist()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
            del distances
        return statistics.median(times)

    ours, theirs = [], []
    for _ in range(arguments.rounds):
        theirs.append(torch_ms())
        # Memory that PyTorch keeps would be missing for gloved-bench.
        torch.cuda.empty_cache()
        ours.append(gloved_ms(arguments))
    print("torch cdist   ms " + ", ".join(f"{ms:.3f}" for ms in theirs))
    print("gloved cuda   ms " + ", ".join(f"{ms:.3f}" for ms in ours))
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"gloved is {ratio:.2f} times as fast")

    # Squared distances of a sample of rows, PyTorch's own accuracy by the product; gloved's
    # difference is bound by its definition and checked byte by byte in each of its runs, so that
    # the same sum in float32 stands for it here.
    sample = torch.arange(0, arguments.rows, max(arguments.rows // 16, 1), device="cuda")
    exact = torch.stack([((points[i].double() - points.double()) ** 2).sum(dim=1) for i in sample])
    by_product = cdist()[sample].double() ** 2
    by_difference = torch.stack([((points[i] - points) ** 2).sum(dim=1) for i in sample]).double()
    apart = exact > 0
    for name, found in (
        ("torch, by the matrix product", by_product),
        ("by float32 differences", by_difference),
    ):
        error = ((found - exact).abs() / exact)[apart].max().item()
        on_diagonal = found[~apart].abs().max().item()
        print(
            f"{name}: at most {error:.1e} from float64, relatively; {on_diagonal:.1e} where the"
            " distance is 0"
        )
    sys.exit(0 if ratio >= 1 else 1)


if __name__ == "__main__":
    main()
