"""A Python program that calls the driver through ctypes, as many monitoring tools do. Argument: the driver's file name."""
import ctypes
import sys

driver = ctypes.CDLL(sys.argv[1])
handed_out = ctypes.CDLL(None).vramd_hook_handed_out
handed_out.restype = ctypes.c_uint64

assert driver.cuInit(0) == 0
count = ctypes.c_int(-1)
assert driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value >= 1
total = ctypes.c_size_t()
assert driver.cuDeviceTotalMem_v2(ctypes.byref(total), 0) == 0 and total.value > 0
assert handed_out(b"cuInit") == 1, "cuInit was not hooked"
assert handed_out(b"cuDeviceTotalMem_v2") == 1, "cuDeviceTotalMem_v2 was not hooked"
assert handed_out(b"cuDeviceGetCount") == 0
try:
    driver.cuNoSuchFunction
except AttributeError:
    sys.exit(0)
sys.exit("a function that does not exist was found")
