"""A scoring service: softmax attention of one query over the stored embeddings, with Triton kernels.

    python triton_service.py --port 8080 --embeddings embeddings.npy

POST /score with {"query": [...], "top": 10} answers with the best rows and their weights.
"""

import argparse
import json
import logging
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import triton
import triton.language as tl

log = logging.getLogger("scoring")

CONFIGS = [
    triton.Config({"ROWS": rows, "COLUMNS": columns}, num_warps=warps, num_stages=stages)
    for rows in (16, 32, 64, 128)
    for columns in (32, 64, 128)
    for warps in (2, 4, 8)
    for stages in (2, 3)
]


@triton.autotune(configs=CONFIGS, key=["rows", "columns"])
@triton.jit
def dot_rows(table, query, scores, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The product of each row of the table with the query."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, columns, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        block = tl.load(table + row[:, None] * stride + column[None, :], mask=inside, other=0.0)
        part = tl.load(query + column, mask=column < columns, other=0.0)
        total += tl.sum(block.to(tl.float32) * part.to(tl.float32)[None, :], axis=1)
    tl.store(scores + row, total, mask=row < rows)


@triton.jit
def softmax_parts(scores, maxima, sums, rows, temperature, BLOCK: tl.constexpr):
    """Maximum and sum of exponentials of each block of scores."""
    block = tl.program_id(0)
    index = block * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(scores + index, mask=index < rows, other=float("-inf")) / temperature
    largest = tl.max(value, axis=0)
    tl.store(maxima + block, largest)
    tl.store(sums + block, tl.sum(tl.exp(value - largest), axis=0))


class Scorer:
    """The embeddings on the device, and the kernels over them."""

    def __init__(self, embeddings: np.ndarray, temperature: float = 0.07):
        self.table = torch.from_numpy(embeddings).to("cuda", torch.float16).contiguous()
        self.temperature = temperature

    def score(self, query: list[float], top: int) -> list[dict[str, float]]:
        """The `top` best rows and their softmax weights."""
        rows, columns = self.table.shape
        vector = torch.tensor(query, device="cuda", dtype=torch.float16)
        scores = torch.empty(rows, device="cuda", dtype=torch.float32)
        dot_rows[lambda meta: (triton.cdiv(rows, meta["ROWS"]),)](
            self.table, vector, scores, rows, columns, self.table.stride(0)
        )
        block = 1024
        blocks = triton.cdiv(rows, block)
        maxima = torch.empty(blocks, device="cuda", dtype=torch.float32)
        sums = torch.empty(blocks, device="cuda", dtype=torch.float32)
        softmax_parts[(blocks,)](scores, maxima, sums, rows, self.temperature, BLOCK=block)
        largest = maxima.max()
        total = (sums * torch.exp(maxima - largest)).sum()
        best = torch.topk(scores, min(top, rows))
        weights = torch.exp(best.values / self.temperature - largest) / total
        return [
            {"row": int(row), "weight": float(weight)}
            for row, weight in zip(best.indices.tolist(), weights.tolist(), strict=True)
        ]


class Handler(BaseHTTPRequestHandler):
    """POST /score."""

    scorer: Scorer

    def do_POST(self):
        """Answer one request."""
        if self.path != "/score":
            self.send_error(404)
            return
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        start = time.perf_counter()
        found = self.scorer.score(request["query"], int(request.get("top", 10)))
        log.info("scored in %.1f ms", 1000.0 * (time.perf_counter() - start))
        body = json.dumps({"best": found}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    """Load the embeddings and serve."""
    parser = argparse.ArgumentParser(description="Score queries against stored embeddings.")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--embeddings", required=True, help="a .npy file, one embedding a row")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    Handler.scorer = Scorer(np.load(options.embeddings))
    ThreadingHTTPServer(("", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
