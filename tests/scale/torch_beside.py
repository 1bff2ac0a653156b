#!/usr/bin/env python3
"""Times PyTorch's exact search on this machine's GPU, to compare with gloved-bench.

    torch_beside.py [--rows N] [--dim D] [--batches 1,256,1024] [--k K] [--repeat R]

All in float32 (no TF32): a batch of queries times all rows, then topk, then a copy of scores and
indices to the host. Rows are random and normalised, since content does not change the time. Prints
a line for each batch. Exit status 1 without PyTorch or a GPU.
"""
import argparse
import statistics
import sys
import time


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def batch_list(text):
    return [positive(part) for part in text.split(",")]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Times PyTorch's float32 mm and topk on this machine's GPU.",
        epilog="example: torch_beside.py --rows 2196016 --dim 300 --batches 1,256,1024",
    )
    parser.add_argument("--rows", type=positive, default=2196016)
    parser.add_argument("--dim", type=positive, default=300)
    parser.add_argument("--batches", type=batch_list, default=[1, 256, 1024])
    parser.add_argument("--k", type=positive, default=10)
    parser.add_argument(
        "--repeat", type=positive, default=15, help="timed runs, after two that do not count"
    )
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        import torch
    except ImportError as error:
        sys.exit(f"torch_beside.py: {error}")
    if not torch.cuda.is_available():
        sys.exit("torch_beside.py: PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.manual_seed(1)
    k = min(arguments.k, arguments.rows)
    rows = torch.randn(arguments.rows, arguments.dim, device="cuda")
    rows /= rows.norm(dim=1, keepdim=True)
    print(
        (
            f"torch {torch.__version__} on {torch.cuda.get_device_name()}, {arguments.rows} x"
            f" {arguments.dim} float32"
        ),
        flush=True,
    )

    def search(queries):
        best = torch.topk(torch.mm(queries, rows.t()), k, dim=1)
        return best.values.cpu(), best.indices.cpu()

    for batch in arguments.batches:
        try:
            queries = torch.randn(batch, arguments.dim, device="cuda")
            queries /= queries.norm(dim=1, keepdim=True)
            for _ in range(2):
                search(queries)
            times = []
            for _ in range(arguments.repeat):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                search(queries)  # ends with copies to the host, which wait for all before them
                times.append((time.perf_counter() - begin) * 1000)
        except torch.cuda.OutOfMemoryError:
            print(f"torch fp32 mm + topk({k}), batch {batch}: not enough memory for the scores")
            torch.cuda.empty_cache()
            continue
        ms = statistics.median(times)
        print(
            (
                f"torch fp32 mm + topk({k}), batch {batch}: {ms:.3f} ms median, {min(times):.3f} ms"
                f" min, {batch / ms * 1000:.0f} queries/s"
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
