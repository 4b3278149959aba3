"""pytorch_check.py: PyTorch allocates, frees and multiplies; one line of JSON. tests/gpu/run starts it with and without the shim."""
import json
import time

import torch

begin = time.monotonic()
result = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name(0)}
for exponent in range(10, 28, 3):
    blocks = [torch.empty(1 << exponent, dtype=torch.uint8, device="cuda") for _ in range(8)]
    del blocks
torch.cuda.empty_cache()
a = torch.arange(256 * 256, dtype=torch.float64, device="cuda").reshape(256, 256) % 7
product = a @ a
torch.cuda.synchronize()
result["right"] = bool(torch.equal(product.cpu(), a.cpu() @ a.cpu()))
result["reserved"] = torch.cuda.memory_reserved()
result["seconds"] = round(time.monotonic() - begin, 2)
print(json.dumps(result))
raise SystemExit(0 if result["right"] else 1)
