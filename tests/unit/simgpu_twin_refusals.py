#!/usr/bin/env python3
"""What has no twin must not compile, with a message that says why.

usage: simgpu_twin_refusals.py COMPILER SOURCE_ROOT CUDA_INCLUDE
"""
import subprocess
import sys

HEADER = '#include "tools/simgpu/twins/host_kernels.hpp"\n'
CASES = [  # kernel body, text of the error (None: compiles)
    ("out[threadIdx.x] = 1;", None),
    ("atomicAdd(out, 1); __threadfence();", None),
    ("out[0] = 1; __syncthreads();", None),
    ("out[0] = __syncthreads_count(1) + __syncthreads_and(1) + __syncthreads_or(1);", None),
    ("__shared__ int s[4]; s[0] = 1; out[0] = s[0];", None),
    ("extern __shared__ float f[]; f[threadIdx.x] = 1; __syncthreads(); out[0] = f[0] > 0;", None),
    ("out[0] = __shfl_down_sync(0xffffffffU, out[1], 1);", "__shfl_down_sync has no twin"),
    ("__syncwarp();", "__syncwarp has no twin"),
    ("out[0] = static_cast<int>(__activemask());", "__activemask has no twin"),
    ("out[0] = static_cast<int>(__ballot_sync(0xffffffffU, 1));", "__ballot_sync has no twin"),
    ("out[0] = __all_sync(0xffffffffU, 1);", "__all_sync has no twin"),
    ("out[0] = __shfl_sync(0xffffffffU, out[1], 0);", "__shfl_sync has no twin"),
]


def compile(compiler, root, cuda, body):
    source = HEADER + f"__global__ void kernel(int* out) {{ {body} }}\nSIM_TWIN(kernel, kernel)\n"
    command = [compiler, "-std=c++20", "-O1", f"-I{root}", "-isystem", cuda, "-x", "c++", "-c", "-o", "/dev/null", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, timeout=100)


def main():
    failed = 0
    for body, expected in CASES:
        result = compile(*sys.argv[1:4], body)
        good = result.returncode == 0 if expected is None else result.returncode != 0 and expected in result.stderr
        print(f"{'ok  ' if good else 'FAIL'} {body}" + ("" if good else "\n" + result.stderr))
        failed += not good
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
