"""What the device layer does with memory, streams and contexts, as JSON: python -m tests.devices.on_fake_driver."""

from __future__ import annotations

import gc
import json
from typing import Any

import numpy as np
from cuda.bindings import driver

from smembench.devices.buffers import new_stream
from smembench.devices.cuda import CudaDevice
from smembench.kernels.device_memory import device_array, pinned_array, to_device
from smembench.kernels.driver import checked, copy


def free() -> int:
    return int(checked(driver.cuMemGetInfo())[0])


def main() -> dict[str, Any]:
    device = CudaDevice(0)
    result: dict[str, Any] = {}
    before = free()
    array = to_device(np.arange(100, dtype=np.float32))
    part = array[10:20].view(np.uint32)
    result["taken"] = before - free()
    del array
    result["kept by a part"] = before - free()
    result["part"] = part.copy_to_host().view(np.float32).tolist()

    pinned = pinned_array(10, np.uint32)
    stream = new_stream()
    copy(int(stream.handle), pinned, part)
    stream.sync()
    result["pinned"] = pinned.view(np.float32).tolist()
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    of_host = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    result["is pinned"] = bool(checked(driver.cuPointerGetAttribute(kind, pinned.ctypes.data)) == of_host)
    del part
    gc.collect()
    result["freed"] = before - free()

    from numba import cuda

    ours = checked(driver.cuCtxGetCurrent())
    theirs = to_device(np.arange(5, dtype=np.int32))
    result["by Numba"] = cuda.as_cuda_array(theirs).copy_to_host().tolist()
    result["one context"] = int(cuda.current_context().handle) == int(ours) == int(checked(driver.cuCtxGetCurrent()))
    primary = checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(0))))
    result["primary"] = int(primary) == int(ours)
    try:
        device_array(2**40, np.uint8)
    except RuntimeError as error:
        result["too much"] = str(error)
    device.close()
    return result


if __name__ == "__main__":
    print(json.dumps(main()))
