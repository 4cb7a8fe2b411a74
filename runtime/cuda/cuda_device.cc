#include "runtime/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "pcg/support/file.h"
#include "pcg/support/hash.h"
#include "pcg/support/status_macros.h"
#include "runtime/cuda/generated_kernel.h"

namespace isomer {
namespace {

using Address = CudaDriver::Address;

Address AddressOf(const void* pointer) { return reinterpret_cast<Address>(pointer); }

// What the thread uses, and of which device.
struct UsedStream {
  const CudaDevice* device = nullptr;
  void* stream = nullptr;
};
thread_local UsedStream used_stream;

// {that there is a bad index, it, whose it is}.
using ErrorWords = std::array<int64_t, 3>;

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(
    std::shared_ptr<const CudaToolchain> toolchain, int ordinal) {
  const CudaDriver& driver = toolchain->driver;
  const auto check = [&](int error, absl::string_view what) {
    return CudaStatus(driver, error, absl::StrCat("GPU ", ordinal, ": ", what));
  };
  int count = 0;
  ISOMER_RETURN_IF_ERROR(check(driver.device_count(&count), "cannot count GPUs"));
  if (ordinal >= count) {
    return absl::InvalidArgumentError(absl::StrCat("device ", ordinal,
                                                   " is not there: this machine has ", count,
                                                   count == 1 ? " GPU" : " GPUs"));
  }
  int device = 0, major = 0, minor = 0;
  ISOMER_RETURN_IF_ERROR(check(driver.device(&device, ordinal), "is not there"));
  ISOMER_RETURN_IF_ERROR(
      check(driver.device_attribute(&major, cuda_driver::kCapabilityMajor, device), "has no age"));
  ISOMER_RETURN_IF_ERROR(
      check(driver.device_attribute(&minor, cuda_driver::kCapabilityMinor, device), "has no age"));
  constexpr int kOldest = 8;
  if (major < kOldest) {
    return absl::UnavailableError(absl::StrCat("GPU ", ordinal, " is of compute capability ", major,
                                               ".", minor, "; 8.0 (A100) and later are supported"));
  }
  std::unique_ptr<CudaDevice> opened(new CudaDevice(std::move(toolchain)));
  opened->ordinal_ = ordinal;
  opened->driver_device_ = device;
  opened->architecture_ = absl::StrCat("sm_", major, minor);
  char name[256] = {};
  int cache = 0;
  ISOMER_RETURN_IF_ERROR(check(driver.device_name(name, sizeof name - 1, device), "has no name"));
  ISOMER_RETURN_IF_ERROR(
      check(driver.device_attribute(&cache, cuda_driver::kLastCacheBytes, device), "has no cache"));
  opened->name_ = name;
  opened->last_cache_bytes_ = cache;
  ISOMER_RETURN_IF_ERROR(
      check(driver.retain_context(&opened->context_, device), "gives no context"));
  ISOMER_RETURN_IF_ERROR(opened->Enter());
  ISOMER_RETURN_IF_ERROR(check(
      driver.create_stream(&opened->own_stream_, cuda_driver::kNonBlocking, 0), "gives no stream"));
  if (const int status = opened->toolchain_->products.create(&opened->products_); status != 0) {
    return absl::InternalError(
        absl::StrCat("GPU ", ordinal, ": cuBLASLt does not start (status ", status, ")"));
  }
  ISOMER_ASSIGN_OR_RETURN(opened->error_words_, opened->Allocate(sizeof(ErrorWords)));
  const ErrorWords none = {};
  ISOMER_RETURN_IF_ERROR(opened->FromHost(none.data(), sizeof none, opened->error_words_));
  return opened;
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr || !Enter().ok()) return;
  if (own_stream_ != nullptr) driver().synchronize(own_stream_);
  for (const auto& [text, module] : modules_) driver().unload_module(module);
  if (error_words_ != nullptr) driver().free(AddressOf(error_words_));
  if (products_ != nullptr) toolchain_->products.destroy(products_);
  if (cudnn_handle_ != nullptr) (*cudnn_)->destroy(cudnn_handle_);
  if (own_stream_ != nullptr) driver().destroy_stream(own_stream_);
  driver().release_context(driver_device_);
}

absl::Status CudaDevice::Enter() const {
  return CudaStatus(driver(), driver().set_context(context_), absl::StrCat("GPU ", ordinal_));
}

absl::Status CudaDevice::Check(int error, absl::string_view what) const {
  if (error == 0) return absl::OkStatus();
  return CudaStatus(driver(), error, absl::StrCat("GPU ", ordinal_, ": ", what));
}

void CudaDevice::UseStream(void* stream) {
  if (stream == nullptr && used_stream.device != this) return;
  used_stream = {this, stream};
}

void* CudaDevice::stream() const {
  const bool uses_one = used_stream.device == this && used_stream.stream != nullptr;
  return uses_one ? used_stream.stream : own_stream_;
}

absl::StatusOr<void*> CudaDevice::Allocate(int64_t bytes) {
  ISOMER_RETURN_IF_ERROR(Enter());
  Address address = 0;
  if (driver().allocate(&address, static_cast<size_t>(std::max<int64_t>(bytes, 1))) != 0) {
    size_t free = 0, total = 0;
    driver().memory_info(&free, &total);
    return absl::ResourceExhaustedError(absl::StrCat("GPU ", ordinal_, ": there are no ", bytes,
                                                     " bytes of memory: ", free, " of ", total,
                                                     " are free"));
  }
  return reinterpret_cast<void*>(address);
}

void CudaDevice::Free(void* address) {
  if (Enter().ok()) driver().free(AddressOf(address));
}

absl::StatusOr<void*> CudaDevice::AllocateOnHost(int64_t bytes) {
  ISOMER_RETURN_IF_ERROR(Enter());
  void* memory = nullptr;
  if (driver().allocate_host(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)),
                             cuda_driver::kPortableAndMapped) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("GPU ", ordinal_, ": there are no ", bytes,
                     " bytes of the host's memory that it can reach"));
  }
  return memory;
}

void CudaDevice::FreeOnHost(void* memory) {
  if (Enter().ok()) driver().free_host(memory);
}

absl::Status CudaDevice::FromHost(const void* host, int64_t bytes, void* device) {
  ISOMER_RETURN_IF_ERROR(Enter());
  ISOMER_RETURN_IF_ERROR(CudaStatus(
      driver(), driver().copy_in(AddressOf(device), host, static_cast<size_t>(bytes), stream()),
      absl::StrCat("GPU ", ordinal_, ": a copy from the host")));
  return Synchronize();  // The host's memory is its own again.
}

absl::Status CudaDevice::CopyOut(const void* device, int64_t bytes, void* host) const {
  ISOMER_RETURN_IF_ERROR(Enter());
  return CudaStatus(
      driver(), driver().copy_out(host, AddressOf(device), static_cast<size_t>(bytes), stream()),
      absl::StrCat("GPU ", ordinal_, ": a copy to the host"));
}

absl::Status CudaDevice::ToHost(const void* device, int64_t bytes, void* host) {
  ISOMER_RETURN_IF_ERROR(CopyOut(device, bytes, host));
  return Wait();
}

absl::Status CudaDevice::Wait() {
  std::lock_guard errors(errors_);
  ErrorWords words = {};
  ISOMER_RETURN_IF_ERROR(CopyOut(error_words_, sizeof words, words.data()));
  ISOMER_RETURN_IF_ERROR(Synchronize());
  if (words[0] == 0) return absl::OkStatus();
  const ErrorWords none = {};
  ISOMER_RETURN_IF_ERROR(FromHost(none.data(), sizeof none, error_words_));
  std::lock_guard lock(mutex_);
  const auto number = static_cast<size_t>(words[2]);
  return absl::InvalidArgumentError(
      absl::StrCat(number < kernels_.size() ? kernels_[number] : "a look-up", ": index ", words[1],
                   " is outside of what it looks up"));
}

absl::Status CudaDevice::Copy(const void* from, int64_t bytes, void* to) {
  ISOMER_RETURN_IF_ERROR(Enter());
  return CudaStatus(
      driver(), driver().copy(AddressOf(to), AddressOf(from), static_cast<size_t>(bytes), stream()),
      absl::StrCat("GPU ", ordinal_, ": a copy"));
}

absl::Status CudaDevice::Synchronize() const {
  ISOMER_RETURN_IF_ERROR(Enter());
  return CudaStatus(driver(), driver().synchronize(stream()), absl::StrCat("GPU ", ordinal_));
}

// A file's name is a hash of all that its content depends on; that content begins with the text, so
// that two with one hash are told apart.
absl::StatusOr<std::string> CudaDevice::Compiled(const std::string& text, bool finds,
                                                 bool* is_found) const {
  *is_found = false;
  const std::string whole = absl::StrCat(KernelPrelude(), text);
  if (toolchain_->cache_folder.empty()) return toolchain_->compile(whole, architecture_);
  const std::string key = absl::StrCat(toolchain_->compiler, " ", architecture_, "\n", whole);
  const std::string path =
      absl::StrCat(toolchain_->cache_folder, "/", DigestString(HashBytes(key)), ".cubin");
  if (absl::StatusOr<std::string> kept = ReadFile(path);
      finds && kept.ok() && absl::string_view(*kept).substr(0, key.size()) == key &&
      kept->size() > key.size()) {
    *is_found = true;
    return kept->substr(key.size());
  }
  ISOMER_ASSIGN_OR_RETURN(std::string image, toolchain_->compile(whole, architecture_));
  // What cannot be kept is compiled again the next time.
  std::error_code error;
  std::filesystem::create_directories(toolchain_->cache_folder, error);
  if (!error) WriteFileAtomically(path, absl::StrCat(key, image)).IgnoreError();
  return image;
}

absl::StatusOr<void*> CudaDevice::Load(const std::string& text) {
  {
    std::lock_guard lock(mutex_);
    if (const auto known = modules_.find(text); known != modules_.end()) return known->second;
  }
  bool is_found = false;
  ISOMER_ASSIGN_OR_RETURN(std::string image, Compiled(text, /*finds=*/true, &is_found));
  ISOMER_RETURN_IF_ERROR(Enter());
  void* module = nullptr;
  int error = driver().load_module(&module, image.c_str());
  if (error != 0 && is_found) {  // Damaged.
    ISOMER_ASSIGN_OR_RETURN(image, Compiled(text, /*finds=*/false, &is_found));
    error = driver().load_module(&module, image.c_str());
  }
  ISOMER_RETURN_IF_ERROR(
      CudaStatus(driver(), error, absl::StrCat("GPU ", ordinal_, ": does not load a kernel")));
  std::lock_guard lock(mutex_);
  const auto [known, is_first] = modules_.emplace(text, module);
  if (!is_first) driver().unload_module(module);  // Another thread was first.
  return known->second;
}

absl::StatusOr<void*> CudaDevice::FunctionOf(void* module, const std::string& name) {
  ISOMER_RETURN_IF_ERROR(Enter());
  void* function = nullptr;
  ISOMER_RETURN_IF_ERROR(CudaStatus(driver(), driver().function(&function, module, name.c_str()),
                                    absl::StrCat("GPU ", ordinal_, ": has no kernel ", name)));
  return function;
}

absl::Status CudaDevice::Launch(void* function, int64_t elements, const void* parameters,
                                int elements_per_block) {
  if (elements == 0) return absl::OkStatus();
  ISOMER_RETURN_IF_ERROR(Enter());
  // As many blocks as keep a large GPU busy; a block goes on behind them.
  constexpr int64_t kMostBlocks = 16384;
  const int64_t blocks =
      std::min((elements + elements_per_block - 1) / elements_per_block, kMostBlocks);
  void* list[] = {const_cast<void*>(parameters)};
  return CudaStatus(driver(),
                    driver().launch(function, static_cast<unsigned>(blocks), 1, 1,
                                    GeneratedKernel::kBlock, 1, 1, 0, stream(), list, nullptr),
                    absl::StrCat("GPU ", ordinal_, ": does not start a kernel"));
}

absl::StatusOr<std::unique_ptr<PreparedProduct>> CudaDevice::Prepare(const Product& product,
                                                                     int64_t alignment) {
  ISOMER_RETURN_IF_ERROR(Enter());
  return PreparedProduct::Make(toolchain_->products, products_, product, alignment);
}

absl::Status CudaDevice::RunProduct(const PreparedProduct& product, const void* a, const void* b,
                                    void* d, const void* bias, void* workspace) {
  ISOMER_RETURN_IF_ERROR(Enter());
  return product.Run(a, b, d, bias, workspace, stream());
}

absl::StatusOr<std::unique_ptr<CudnnPlan>> CudaDevice::Prepare(const FusedAttention& attention) {
  ISOMER_RETURN_IF_ERROR(Enter());
  std::lock_guard lock(graphs_);
  if (!cudnn_) {
    cudnn_ = toolchain_->open_cudnn == nullptr
                 ? absl::StatusOr<Cudnn>(absl::UnavailableError("there is no cuDNN"))
                 : toolchain_->open_cudnn();
  }
  if (!cudnn_->ok()) return absl::UnimplementedError(cudnn_->status().message());
  if (cudnn_handle_ == nullptr) {
    if (const int status = (*cudnn_)->create(&cudnn_handle_); status != 0) {
      cudnn_handle_ = nullptr;
      cudnn_ = absl::UnavailableError(
          absl::StrCat("GPU ", ordinal_, ": cuDNN does not start (status ", status, ")"));
      return absl::UnimplementedError(cudnn_->status().message());
    }
  }
  return GraphOf(**cudnn_, attention).Build(cudnn_handle_);
}

absl::Status CudaDevice::RunPlan(CudnnPlan* plan, absl::Span<void* const> tensors,
                                 void* workspace) {
  ISOMER_RETURN_IF_ERROR(Enter());
  std::lock_guard lock(graphs_);
  return plan->Run(tensors, workspace, stream());
}

int64_t CudaDevice::NumberOf(std::string kernel) {
  std::lock_guard lock(mutex_);
  kernels_.push_back(std::move(kernel));
  return static_cast<int64_t>(kernels_.size()) - 1;
}

}  // namespace isomer
