#include "tests/runtime/cuda/fake_cuda_driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "runtime/device/elements.h"
#include "tests/runtime/cuda/fake_cudnn.h"
#include "tests/runtime/cuda/fake_nccl.h"
#include "tests/runtime/cuda/fake_streams.h"

namespace isomer {

std::atomic<int> fake_cuda_compilations = 0;
std::atomic<int> fake_cuda_products = 0;
std::atomic<bool> fake_cuda_refuses_products = false;
std::atomic<bool> fake_cuda_refuses_sums = false;

namespace {

using fake::kIllegalAddress;
using fake::kInvalidValue;
using fake::kOutOfMemory;
using fake::kSuccess;
using Address = CudaDriver::Address;
using Handle = CudaDriver::Handle;

int64_t Pages(int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

struct Device : fake::StreamDevice {
  std::map<Address, int64_t> memory;  // bytes of each piece
  int64_t used = 0;

  void Open(bool opens) override {
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
};

Device devices[kMostFakeGpus];
std::atomic<int> device_count = 1;
thread_local Device* current = nullptr;

// Memory of the host that devices reach.
std::map<Address, size_t>& PinnedMemory() {
  static auto* pinned = new std::map<Address, size_t>();
  return *pinned;
}
bool IsPinned(Address address, size_t bytes) {
  auto piece = PinnedMemory().upper_bound(address);
  if (piece == PinnedMemory().begin()) return false;
  --piece;
  return address + bytes <= piece->first + piece->second;
}

struct Function {
  void (*run)(const void* parameters);
  size_t bytes;
};

// Libraries are opened as often as there are modules of them.
struct Module {
  void* library = nullptr;
  std::list<Function> functions;
};

fake::Stream* OfStream(Handle stream) { return static_cast<fake::Stream*>(stream); }
fake::Event* OfEvent(Handle event) { return static_cast<fake::Event*>(event); }
fake::Graph* OfGraph(Handle graph) { return static_cast<fake::Graph*>(graph); }

// Gives work to a stream of the current device.
int Give(Handle stream, std::function<int()> work) {
  if (current == nullptr || fake::DeviceOf(OfStream(stream)) != current) return kInvalidValue;
  return fake::Give(OfStream(stream), {std::move(work)});
}
// A copy, of which both ends are memory of this device or of the host that devices reach.
int GiveCopy(Address to, Address from, size_t bytes, Handle stream) {
  return Give(stream, [=, device = current] {
    for (const Address end : {to, from}) {
      if (!device->Has(end, bytes) && !IsPinned(end, bytes)) return kIllegalAddress;
    }
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return kSuccess;
  });
}

CudaDriver MakeDriver() {
  CudaDriver driver;
  driver.init = [](unsigned) { return kSuccess; };
  driver.device_count = [](int* count) {
    *count = device_count;
    return kSuccess;
  };
  driver.device = [](int* device, int ordinal) {
    *device = ordinal;
    return ordinal < device_count ? kSuccess : kInvalidValue;
  };
  driver.device_attribute = [](int* value, int attribute, int) {
    *value = attribute == 75 ? 9 : attribute == 38 ? 1 << 16 : 0;
    return kSuccess;
  };
  driver.device_name = [](char* name, int bytes, int) {
    std::strncpy(name, "a fake GPU", static_cast<size_t>(bytes));
    return kSuccess;
  };
  driver.wait_value = [](Handle stream, Address address, unsigned value, unsigned) {
    if (fake::IsCapturing()) return fake::kCaptureUnsupported;
    auto* const word = reinterpret_cast<unsigned*>(address);
    return fake::Give(OfStream(stream),
                      {[] { return kSuccess; },
                       [word, value] { return std::atomic_ref(*word).load() >= value; }});
  };
  driver.retain_context = [](Handle* context, int device) {
    *context = &devices[device];
    return kSuccess;
  };
  driver.release_context = [](int) { return kSuccess; };
  driver.set_context = [](Handle context) {
    current = static_cast<Device*>(context);
    return kSuccess;
  };
  driver.allocate = [](Address* address, size_t bytes) {
    if (fake::IsCapturing()) return fake::kCaptureUnsupported;
    int error = kSuccess;
    fake::Locked([&] {
      const int64_t pages = Pages(static_cast<int64_t>(bytes));
      void* memory = current->used + static_cast<int64_t>(bytes) > kFakeCudaBytes
                         ? MAP_FAILED
                         : mmap(nullptr, static_cast<size_t>(pages), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) {
        error = kOutOfMemory;
        return;
      }
      std::memset(memory, 0xff, static_cast<size_t>(pages));  // NaN
      mprotect(memory, static_cast<size_t>(pages), PROT_NONE);
      *address = reinterpret_cast<Address>(memory);
      current->memory[*address] = static_cast<int64_t>(bytes);
      current->used += static_cast<int64_t>(bytes);
    });
    return error;
  };
  driver.free = [](Address address) {
    if (fake::IsCapturing()) return fake::kCaptureUnsupported;
    fake::SynchronizeDevice(current);  // As cuMemFree does.
    int error = kSuccess;
    fake::Locked([&] {
      const auto piece = current->memory.find(address);
      if (piece == current->memory.end()) {
        error = kInvalidValue;
        return;
      }
      munmap(reinterpret_cast<void*>(address), static_cast<size_t>(Pages(piece->second)));
      current->used -= piece->second;
      current->memory.erase(piece);
    });
    return error;
  };
  driver.allocate_host = [](void** memory, size_t bytes, unsigned) {
    *memory = std::malloc(bytes);
    fake::Locked([&] { PinnedMemory()[reinterpret_cast<Address>(*memory)] = bytes; });
    return kSuccess;
  };
  driver.free_host = [](void* memory) {
    fake::Locked([&] { PinnedMemory().erase(reinterpret_cast<Address>(memory)); });
    std::free(memory);
    return kSuccess;
  };
  driver.memory_info = [](size_t* free, size_t* total) {
    *total = kFakeCudaBytes;
    *free = static_cast<size_t>(kFakeCudaBytes - current->used);
    return kSuccess;
  };
  driver.copy_in = [](Address to, const void* from, size_t bytes, Handle stream) {
    return Give(stream, [=, device = current] {
      if (!device->Has(to, bytes)) return kIllegalAddress;
      std::memcpy(reinterpret_cast<void*>(to), from, bytes);
      return kSuccess;
    });
  };
  driver.copy_out = [](void* to, Address from, size_t bytes, Handle stream) {
    return Give(stream, [=, device = current] {
      if (!device->Has(from, bytes)) return kIllegalAddress;
      std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
      return kSuccess;
    });
  };
  driver.copy = GiveCopy;
  driver.stream_priorities = [](int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return kSuccess;
  };
  driver.create_stream = [](Handle* stream, unsigned, int priority) {
    if (priority < -5 || priority > 0) return kInvalidValue;
    *stream = fake::NewStream(current);
    return kSuccess;
  };
  driver.destroy_stream = [](Handle stream) {
    fake::DeleteStream(OfStream(stream));
    return kSuccess;
  };
  driver.synchronize = [](Handle stream) {
    return fake::IsCapturing() ? fake::kCaptureUnsupported : fake::Synchronize(OfStream(stream));
  };
  driver.query = [](Handle stream) { return fake::Query(OfStream(stream)); };
  driver.create_event = [](Handle* event, unsigned) {
    *event = fake::NewEvent();
    return kSuccess;
  };
  driver.destroy_event = [](Handle event) {
    fake::DeleteEvent(OfEvent(event));
    return kSuccess;
  };
  driver.record = [](Handle event, Handle stream) {
    return fake::Record(OfEvent(event), OfStream(stream));
  };
  driver.wait_event = [](Handle stream, Handle event, unsigned) {
    return fake::WaitEvent(OfStream(stream), OfEvent(event));
  };
  driver.elapsed = [](float* ms, Handle from, Handle to) {
    return fake::Elapsed(ms, OfEvent(from), OfEvent(to));
  };
  driver.begin_capture = [](Handle stream, int) { return fake::BeginCapture(OfStream(stream)); };
  driver.end_capture = [](Handle stream, Handle* graph) {
    fake::Graph* captured = nullptr;
    const int error = fake::EndCapture(OfStream(stream), &captured);
    *graph = captured;
    return error;
  };
  // The graph itself.
  driver.instantiate = [](Handle* executable, Handle graph, unsigned long long) {
    *executable = graph;
    return kSuccess;
  };
  driver.destroy_graph = [](Handle) { return kSuccess; };
  driver.launch_graph = [](Handle executable, Handle stream) {
    return fake::Launch(OfGraph(executable), OfStream(stream));
  };
  driver.destroy_executable = [](Handle executable) {
    fake::DeleteGraph(OfGraph(executable));
    return kSuccess;
  };
  driver.load_module = [](Handle* module, const void* image) {
    void* library = dlopen(static_cast<const char*>(image), RTLD_NOW | RTLD_LOCAL);
    *module = library == nullptr ? nullptr : new Module{library, {}};
    return library == nullptr ? kInvalidValue : kSuccess;
  };
  driver.unload_module = [](Handle module) {
    auto* const loaded = static_cast<Module*>(module);
    const int error = dlclose(loaded->library);
    delete loaded;
    return error == 0 ? kSuccess : kInvalidValue;
  };
  driver.function = [](Handle* function, Handle module, const char* name) {
    auto* const loaded = static_cast<Module*>(module);
    void* run = dlsym(loaded->library, name);
    const void* bytes = dlsym(loaded->library, absl::StrCat(name, "_bytes").c_str());
    if (run == nullptr || bytes == nullptr) return kInvalidValue;
    fake::Locked([&] {
      *function = &loaded->functions.emplace_back(
          Function{reinterpret_cast<void (*)(const void*)>(run),
                   static_cast<size_t>(*static_cast<const unsigned long long*>(bytes))});
    });
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

// cuBLASLt, by its manual: column-major matrices, refusals of what does not fit.
struct Operation {
  int compute = 0, scale = 0;
  int32_t transpose_a = 0, transpose_b = 0, epilogue = 1, bias_type = 0;
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, stride = 0;
  int32_t batch = 1;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};
constexpr int kNotSupported = 15, kInvalid = 7;
constexpr size_t kFakeWorkspace = 1024;

int64_t BytesOfType(int type) { return type == cublas_lt::kFloat32 ? 4 : 2; }
DataType DtypeOfCublas(int type) {
  return type == cublas_lt::kFloat32    ? DataType::kFloat32
         : type == cublas_lt::kBFloat16 ? DataType::kBFloat16
                                        : DataType::kFloat16;
}
float LoadOne(int type, const void* data, int64_t i) {
  float value = 0;
  LoadElements(DtypeOfCublas(type), static_cast<const char*>(data) + i * BytesOfType(type), 1,
               &value);
  return value;
}

CublasLt MakeProducts() {
  CublasLt lt;
  lt.create = [](Handle* handle) {
    *handle = current;  // Of the context that is current.
    return current == nullptr ? 1 : 0;
  };
  lt.destroy = [](Handle) { return 0; };
  lt.create_operation = [](Handle* operation, int compute, int scale) {
    *operation = new Operation{compute, scale};
    return 0;
  };
  lt.set_operation = [](Handle operation, int attribute, const void* value, size_t bytes) {
    auto* op = static_cast<Operation*>(operation);
    const auto set = [&](auto* field) {
      if (bytes != sizeof *field) return kInvalid;
      std::memcpy(field, value, bytes);
      return 0;
    };
    switch (attribute) {
      case 3:
        return set(&op->transpose_a);
      case 4:
        return set(&op->transpose_b);
      case 7:
        return set(&op->epilogue);
      case 8:
        return set(&op->bias);
      case 26:
        return set(&op->bias_type);
      default:
        return kInvalid;
    }
  };
  lt.destroy_operation = [](Handle operation) {
    delete static_cast<Operation*>(operation);
    return 0;
  };
  lt.create_layout = [](Handle* layout, int type, uint64_t rows, uint64_t columns,
                        int64_t leading) {
    if (rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) return kInvalid;
    *layout = new Layout{type, rows, columns, leading};
    return 0;
  };
  lt.set_layout = [](Handle layout, int attribute, const void* value, size_t bytes) {
    auto* of = static_cast<Layout*>(layout);
    if (attribute == 5 && bytes == sizeof of->batch) {
      std::memcpy(&of->batch, value, bytes);
    } else if (attribute == 6 && bytes == sizeof of->stride) {
      std::memcpy(&of->stride, value, bytes);
    } else {
      return kInvalid;
    }
    return 0;
  };
  lt.destroy_layout = [](Handle layout) {
    delete static_cast<Layout*>(layout);
    return 0;
  };
  lt.create_preference = [](Handle* preference) {
    *preference = new Preference();
    return 0;
  };
  lt.set_preference = [](Handle preference, int attribute, const void* value, size_t bytes) {
    auto* of = static_cast<Preference*>(preference);
    if (attribute == 1 && bytes == sizeof of->workspace) {
      std::memcpy(&of->workspace, value, bytes);
    } else if (attribute >= 5 && attribute <= 8 && bytes == sizeof(uint32_t)) {
      std::memcpy(&of->alignment[attribute - 5], value, bytes);
    } else {
      return kInvalid;
    }
    return 0;
  };
  lt.destroy_preference = [](Handle preference) {
    delete static_cast<Preference*>(preference);
    return 0;
  };
  lt.heuristic = [](Handle handle, Handle operation, Handle a_layout, Handle b_layout, Handle,
                    Handle d_layout, Handle preference, int, CublasLt::Heuristic* results,
                    int* found) {
    const auto& op = *static_cast<Operation*>(operation);
    const auto &a = *static_cast<Layout*>(a_layout), &b = *static_cast<Layout*>(b_layout),
               &d = *static_cast<Layout*>(d_layout);
    const auto& of = *static_cast<Preference*>(preference);
    *found = 0;
    if (handle != current || op.compute != 68 || op.scale != 0) return kInvalid;
    const auto rows = [](const Layout& layout, int32_t transposed) {
      return transposed != 0 ? layout.columns : layout.rows;
    };
    const auto columns = [](const Layout& layout, int32_t transposed) {
      return transposed != 0 ? layout.rows : layout.columns;
    };
    const bool fits = rows(a, op.transpose_a) == d.rows &&
                      columns(b, op.transpose_b) == d.columns &&
                      columns(a, op.transpose_a) == rows(b, op.transpose_b) && a.batch == b.batch &&
                      a.batch == d.batch;
    if (!fits || a.type != b.type) return kInvalid;
    if (fake_cuda_refuses_products || (fake_cuda_refuses_sums && op.epilogue == 256)) {
      return kNotSupported;
    }
    if (op.epilogue != 1 && (op.bias_type != d.type || a.batch != 1)) return kNotSupported;
    if (d.type != a.type && d.type != 0) return kNotSupported;
    // 16-bit products by tensor cores want lines of 16 bytes; this one has nothing else.
    if (a.type != 0 && a.leading * 2 % 4 != 0) return kNotSupported;
    std::memcpy(results->algorithm.data, of.alignment, sizeof of.alignment);
    results->workspace_bytes = of.workspace < kFakeWorkspace ? 0 : kFakeWorkspace;
    results->state = 0;
    *found = 1;
    return 0;
  };
  lt.matmul = [](Handle handle, Handle operation, const void* alpha, const void* a_data,
                 Handle a_layout, const void* b_data, Handle b_layout, const void* beta,
                 const void* c_data, Handle, void* d_data, Handle d_layout,
                 const CublasLt::Algorithm* algorithm, void* workspace, size_t workspace_bytes,
                 Handle stream) {
    const Operation op = *static_cast<Operation*>(operation);
    const Layout a = *static_cast<Layout*>(a_layout), b = *static_cast<Layout*>(b_layout),
                 d = *static_cast<Layout*>(d_layout);
    const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
    uint32_t alignment[4];
    std::memcpy(alignment, algorithm->data, sizeof alignment);
    const auto is_aligned = [&](const void* data, int which) {
      return reinterpret_cast<uintptr_t>(data) % alignment[which] == 0;
    };
    if (handle != current || c_data != d_data || !is_aligned(a_data, 0) || !is_aligned(b_data, 1) ||
        !is_aligned(d_data, 3) || (workspace == nullptr && workspace_bytes > 0)) {
      return kInvalid;
    }
    ++fake_cuda_products;
    return Give(stream, [=] {
      std::memset(workspace, 0xff, workspace_bytes);
      const auto at = [](const Layout& layout, int32_t transposed, int64_t row, int64_t column) {
        return transposed != 0 ? column + row * layout.leading : row + column * layout.leading;
      };
      const int64_t depth = static_cast<int64_t>(op.transpose_a != 0 ? a.rows : a.columns);
      for (int64_t batch = 0; batch < d.batch; ++batch) {
        for (int64_t column = 0; column < static_cast<int64_t>(d.columns); ++column) {
          for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
            float sum = 0;
            for (int64_t i = 0; i < depth; ++i) {
              sum += LoadOne(a.type, a_data, batch * a.stride + at(a, op.transpose_a, row, i)) *
                     LoadOne(b.type, b_data, batch * b.stride + at(b, op.transpose_b, i, column));
            }
            const int64_t place = batch * d.stride + row + column * d.leading;
            sum *= scale;
            if (keep != 0) sum += keep * LoadOne(d.type, d_data, place);
            if (op.epilogue == 256 && column == 0) {
              float of_row = 0;
              for (int64_t i = 0; i < depth; ++i) {
                of_row += LoadOne(a.type, a_data, at(a, op.transpose_a, row, i));
              }
              StoreElements(
                  &of_row, 1, DtypeOfCublas(op.bias_type),
                  static_cast<char*>(const_cast<void*>(op.bias)) + row * BytesOfType(op.bias_type));
            }
            if (op.epilogue == 4) sum += LoadOne(op.bias_type, op.bias, row);
            StoreElements(&sum, 1, DtypeOfCublas(d.type),
                          static_cast<char*>(d_data) + place * BytesOfType(d.type));
          }
        }
      }
      return kSuccess;
    });
  };
  return lt;
}

// The name of a library: what it is loaded by. What devices with other settings compile again is
// kept: the host's compiler is what takes long.
absl::StatusOr<std::string> Compile(absl::string_view text, absl::string_view) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::string, std::less<>>;
  const std::string path =
      absl::StrCat(testing::TempDir(), "/fake_cuda_", getpid(), "_", fake_cuda_compilations++);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (const auto library = known->find(text); library != known->end()) return library->second;
  }
  std::ofstream(path + ".cc") << text;
  const std::string command = absl::StrCat(
      ISOMER_CXX_COMPILER, " -std=c++20 -O0 -w -fPIC -shared -o ", path, ".so ", path, ".cc");
  if (std::system(command.c_str()) != 0) return absl::InvalidArgumentError(command);
  const std::lock_guard<std::mutex> lock(mutex);
  return known->emplace(text, path + ".so").first->second;
}

}  // namespace

fake::StreamDevice* FakeCurrentDevice() { return current; }

CudaToolchain FakeCudaToolchain(int gpus, const std::string& cache_folder) {
  device_count = gpus;
  return {MakeDriver(), MakeProducts(), FakeNccl, FakeCudnn, Compile, "fake 1", cache_folder};
}

}  // namespace isomer
