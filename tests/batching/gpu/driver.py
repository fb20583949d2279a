"""A driver for tests: it loads and launches kernels on the CPU, and records its calls."""

import ctypes
import threading

from tests.batching.gpu.emulation import Kernel

POINTER, NUMBER = ctypes.c_void_p, ctypes.c_uint
NAMES = {1: b"CUDA_ERROR_INVALID_VALUE", 218: b"CUDA_ERROR_INVALID_PTX", 719: b"CUDA_ERROR_LAUNCH_FAILED"}


class Driver:
    """The functions of CUDA's driver that are used, and a record of their calls. status: what launches return."""

    def __init__(self):
        self.loaded, self.launches, self.status, self.loading = [], [], 0, 0
        self.arrays, self.lock = {}, threading.Lock()  # arrays by their addresses
        launch = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, *[NUMBER] * 7, POINTER, ctypes.POINTER(POINTER), POINTER)
        name = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))
        self.cuLaunchKernel, self.cuGetErrorName = launch(self._launch), name(self._name)

    def cuLibraryLoadData(self, library, text, *options):
        assert options == (None, None, 0, None, None, 0)
        library._obj.value = len(self.loaded) + 1
        self.loaded.append(Kernel(text.rstrip(b"\0").decode()))
        return self.loading

    def cuLibraryGetKernel(self, kernel, library, name):
        assert name == b"kernel"
        kernel._obj.value = 0x1000 + library.value
        return 0

    def _name(self, status, at):
        (at._obj if hasattr(at, "_obj") else at.contents).value = NAMES.get(status)
        return int(status not in NAMES)

    def _launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, given, extra):
        assert (gy, gz, by, bz, shared, extra) == (1, 1, 1, 1, 0, None)
        kernel = self.loaded[function - 0x1001]
        pointers = [POINTER.from_address(given[k]).value for k in range(len(kernel.entry.given))]
        with self.lock:
            self.launches.append((gx, bx, stream))
            if not self.status:
                arrays = [self.arrays[x] for x in pointers]
                read = sum(not x.flags.writeable for x in arrays)
                kernel(arrays[:read], arrays[read:], gx, bx)
        return self.status
