"""A job as Python programs are: driver by ctypes, workers by multiprocessing. Argument: spawn, fork or forkserver."""
import ctypes
import multiprocessing
import sys


def use_driver(size):
    """Allocates, copies there and back, frees; what the first call answered that did not succeed, or 0."""
    driver = ctypes.CDLL("libcuda.so.1")
    context, device, block = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
    there, back = (ctypes.c_ubyte * size)(*([size % 251] * size)), (ctypes.c_ubyte * size)()
    for call in (lambda: driver.cuInit(0), lambda: driver.cuDeviceGet(ctypes.byref(device), 0),
                 lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
                 lambda: driver.cuCtxSetCurrent(context),
                 lambda: driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)),
                 lambda: driver.cuMemcpyHtoD_v2(block, there, ctypes.c_size_t(size)),
                 lambda: driver.cuMemcpyDtoH_v2(back, block, ctypes.c_size_t(size)),
                 lambda: driver.cuMemFree_v2(block)):
        result = call()
        if result != 0:
            return result
    return 0 if bytes(there) == bytes(back) else -1


if __name__ == "__main__":
    method = sys.argv[1]
    multiprocessing.set_start_method(method)
    sizes = [1000, 50000, 3, 100000]
    with multiprocessing.Pool(2) as pool:  # workers from before the parent's cuInit
        print("before", pool.map(use_driver, sizes))
        print("parent", use_driver(5000))
        print("after", pool.map(use_driver, sizes))
    with multiprocessing.Pool(2) as pool:  # and from after it: by fork they get the driver's error
        print("late", pool.map(use_driver, sizes))
    print("parent", use_driver(5000))
