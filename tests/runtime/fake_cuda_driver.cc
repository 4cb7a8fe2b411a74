#include "tests/runtime/fake_cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"

namespace isomer {

std::atomic<int> fake_cuda_compilations = 0;

namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kIllegalAddress = 700;
constexpr int kDevices = 2;
using Address = CudaDriver::Address;
using Handle = CudaDriver::Handle;

int64_t Pages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

struct Device {
  std::map<Address, int64_t> memory;  // bytes of each piece
  std::vector<std::function<int()>> stream;
  int64_t used = 0;
  int failed = kSuccess;  // as an error of a GPU stays

  void Open(bool opens) {
    for (const auto& [address, bytes] : memory) {
      mprotect(reinterpret_cast<void*>(address), static_cast<size_t>(Pages(bytes)),
               opens ? PROT_READ | PROT_WRITE : PROT_NONE);
    }
  }
  bool Has(Address address, size_t bytes) const {
    auto piece = memory.upper_bound(address);
    if (piece == memory.begin()) return false;
    --piece;
    return address + bytes <= piece->first + static_cast<Address>(piece->second);
  }
  int Run() {
    Open(true);
    for (const auto& work : stream) {
      if (failed == kSuccess) failed = work();
    }
    stream.clear();
    Open(false);
    return failed;
  }
};

std::mutex mutex;
Device devices[kDevices];
thread_local Device* current = nullptr;

struct Function {
  void (*run)(const void* parameters);
  size_t bytes;
};

Device* OfStream(Handle stream) { return static_cast<Device*>(stream); }

// Gives work to a stream of the current device.
int Give(Handle stream, std::function<int()> work) {
  std::lock_guard lock(mutex);
  if (current == nullptr || OfStream(stream) != current) return kInvalidValue;
  current->stream.push_back(std::move(work));
  return kSuccess;
}

CudaDriver MakeDriver() {
  CudaDriver driver;
  driver.init = [](unsigned) { return kSuccess; };
  driver.device_count = [](int* count) {
    *count = kDevices;
    return kSuccess;
  };
  driver.device = [](int* device, int ordinal) {
    *device = ordinal;
    return ordinal < kDevices ? kSuccess : kInvalidValue;
  };
  driver.device_name = [](char* name, int bytes, int) {
    std::strncpy(name, "fake", static_cast<size_t>(bytes));
    return kSuccess;
  };
  driver.device_attribute = [](int* value, int attribute, int) {
    *value = attribute == 75 ? 9 : 0;
    return kSuccess;
  };
  driver.retain_context = [](Handle* context, int device) {
    *context = &devices[device];
    return kSuccess;
  };
  driver.set_context = [](Handle context) {
    current = static_cast<Device*>(context);
    return kSuccess;
  };
  driver.allocate = [](Address* address, size_t bytes) {
    std::lock_guard lock(mutex);
    if (current->used + static_cast<int64_t>(bytes) > kFakeCudaBytes) return kOutOfMemory;
    const int64_t pages = Pages(static_cast<int64_t>(bytes));
    void* memory = mmap(nullptr, static_cast<size_t>(pages), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return kOutOfMemory;
    std::memset(memory, 0xff, static_cast<size_t>(pages));  // NaN
    mprotect(memory, static_cast<size_t>(pages), PROT_NONE);
    *address = reinterpret_cast<Address>(memory);
    current->memory[*address] = static_cast<int64_t>(bytes);
    current->used += static_cast<int64_t>(bytes);
    return kSuccess;
  };
  driver.free = [](Address address) {
    std::lock_guard lock(mutex);
    current->Run();  // As cuMemFree does.
    const auto piece = current->memory.find(address);
    if (piece == current->memory.end()) return kInvalidValue;
    munmap(reinterpret_cast<void*>(address), static_cast<size_t>(Pages(piece->second)));
    current->used -= piece->second;
    current->memory.erase(piece);
    return kSuccess;
  };
  driver.allocate_host = [](void** memory, size_t bytes, unsigned) {
    *memory = std::malloc(bytes);
    return kSuccess;
  };
  driver.free_host = [](void* memory) {
    std::free(memory);
    return kSuccess;
  };
  driver.memory_info = [](size_t* free, size_t* total) {
    *total = kFakeCudaBytes;
    *free = static_cast<size_t>(kFakeCudaBytes - current->used);
    return kSuccess;
  };
  driver.copy_in = [](Address to, const void* from, size_t bytes, Handle stream) {
    return Give(stream, [=, device = OfStream(stream)] {
      if (!device->Has(to, bytes)) return kIllegalAddress;
      std::memcpy(reinterpret_cast<void*>(to), from, bytes);
      return kSuccess;
    });
  };
  driver.copy_out = [](void* to, Address from, size_t bytes, Handle stream) {
    return Give(stream, [=, device = OfStream(stream)] {
      if (!device->Has(from, bytes)) return kIllegalAddress;
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
      return kSuccess;
    });
  };
  driver.copy = [](Address to, Address from, size_t bytes, Handle stream) {
    return Give(stream, [=, device = OfStream(stream)] {
      if (!device->Has(to, bytes) || !device->Has(from, bytes)) return kIllegalAddress;
      std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
      return kSuccess;
    });
  };
  driver.create_stream = [](Handle* stream, unsigned) {
    *stream = current;
    return kSuccess;
  };
  driver.synchronize = [](Handle stream) {
    std::lock_guard lock(mutex);
    return OfStream(stream)->Run();
  };
  driver.load_module = [](Handle* module, const void* image) {
    *module = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
    return *module == nullptr ? kInvalidValue : kSuccess;
  };
  driver.function = [](Handle* function, Handle module, const char* name) {
    void* run = dlsym(module, name);
    const void* bytes = dlsym(module, absl::StrCat(name, "_bytes").c_str());
    if (run == nullptr || bytes == nullptr) return kInvalidValue;
    *function = new Function{reinterpret_cast<void (*)(const void*)>(run),
                             static_cast<size_t>(*static_cast<const unsigned long long*>(bytes))};
    return kSuccess;
  };
  driver.launch = [](Handle function, unsigned grid_x, unsigned, unsigned, unsigned block_x,
                     unsigned, unsigned, unsigned, Handle stream, void** parameters, void**) {
    const Function kernel = *static_cast<Function*>(function);
    if (grid_x == 0 || block_x == 0 || block_x > 1024) return kInvalidValue;
    // Parameters are the driver's when it returns.
    const auto* begin = static_cast<const char*>(parameters[0]);
    const std::vector<char> owned(begin, begin + kernel.bytes);
    return Give(stream, [=] {
      kernel.run(owned.data());
      return kSuccess;
    });
  };
  driver.error_name = [](int error, const char** name) {
    *name = error == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_INVALID_VALUE";
    return kSuccess;
  };
  driver.error_text = [](int, const char** text) {
    *text = "of the fake";
    return kSuccess;
  };
  return driver;
}

// The name of a library: what it is loaded by.
absl::StatusOr<std::string> Compile(absl::string_view text, absl::string_view) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/fake_cuda_", getpid(), "_", fake_cuda_compilations++);
  std::ofstream(path + ".cc") << text;
  const std::string command = absl::StrCat(
      ISOMER_CXX_COMPILER, " -std=c++20 -O0 -w -fPIC -shared -o ", path, ".so ", path, ".cc");
  if (std::system(command.c_str()) != 0) return absl::InvalidArgumentError(command);
  return path + ".so";
}

}  // namespace

CudaToolchain FakeCudaToolchain(int gpus, const std::string& cache_folder) {
  CudaDriver driver = MakeDriver();
  if (gpus == 1) {
    driver.device_count = [](int* count) {
      *count = 1;
      return kSuccess;
    };
  }
  return {driver, Compile, "fake 1", cache_folder};
}

}  // namespace isomer
